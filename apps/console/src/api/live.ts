/** How often live figures are read again. Nothing is read while the page is hidden. */
export const liveMs = 2_000;
