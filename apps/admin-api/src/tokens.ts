/** Injection tokens of what is not a class of ours. */
export const ADMIN_CONFIG = Symbol('weir.admin-config');
export const CONTROL_CONFIG = Symbol('weir.control-config');
export const CLOCK = Symbol('weir.clock');
export const DATABASE = Symbol('weir.database');
export const SECRET_BOX = Symbol('weir.secret-box');
export const LIVE_ENGINE = Symbol('weir.live-engine');
export const POLICY_PUBLISHER = Symbol('weir.policy-publisher');
export const EXPORT_QUEUE = Symbol('weir.export-queue');
export const RESOLVE_HOST = Symbol('weir.resolve-host');
export const LIVE_REDIS = Symbol('weir.live-redis');
