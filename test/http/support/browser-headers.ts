/** The headers that a browser sends. */
export const BROWSER = {
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
} as const;
