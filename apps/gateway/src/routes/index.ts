import { chatCompletions } from './chat-completions.js';
import type { MeteredRoute } from './metered-route.js';

/** Every route that reaches an upstream. There is no unmetered way to one. */
export const meteredRoutes: readonly MeteredRoute[] = [chatCompletions];
