import type { RenderError } from '@weir/platform';

/** Error bodies of the admin API, as `apiErrorSchema` of the contract has them. */
export const renderApiError: RenderError = (error, requestId) => ({
  error: {
    code: error.code,
    message: error.message,
    details: error.details,
    requestId,
  },
});
