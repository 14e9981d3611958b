import { chatCompletions } from './chat-completions.js';
import { completions } from './completions.js';
import { embeddings } from './embeddings.js';
import { messages } from './messages.js';
import type { MeteredRoute } from './metered-route.js';
import { responses } from './responses.js';

/** Every route that reaches an upstream. There is no unmetered way to one. */
export const meteredRoutes: readonly MeteredRoute[] = [
  chatCompletions,
  completions,
  embeddings,
  responses,
  messages,
];
