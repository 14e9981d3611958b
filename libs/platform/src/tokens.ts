import { Inject } from '@nestjs/common';

/** Injection token of the app's logger, whose type is an interface. */
export const LOGGER = Symbol('weir.logger');
export const METRICS_TOKEN = Symbol('weir.metrics-token');

/** `constructor(@InjectLogger() private readonly logger: Logger)` */
export const InjectLogger = (): ParameterDecorator & PropertyDecorator => Inject(LOGGER);
