/** Injection tokens of what is known by an interface or a type. */
export const CLOCK = Symbol('weir.gateway.clock');
export const QUOTA_ENGINE = Symbol('weir.gateway.quota-engine');
export const GATEWAY_CONFIG = Symbol('weir.gateway.config');
export const TOKEN_COUNTER = Symbol('weir.gateway.token-counter');
