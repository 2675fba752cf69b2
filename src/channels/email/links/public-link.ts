import type { Exchange } from "../../../http/exchange.ts";
import { failure } from "../../../http/failures.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { type InLanguages, LANGUAGE_HEADER, type PageContent, pageAnswer, wantsPage } from "../../../http/page.ts";
import { pathText } from "../../../http/parameters.ts";

/** Members shared by the endpoints of all public links. The token is the only check: no key and no rate limit. */
export const publicLink = {
  tag: "Public links",
  params: { token: pathText("The signed token of a link in a message.", "vhkzlDfNYsGDYPJ4") },
} as const;

/** Members shared by the endpoints of links that people follow. */
export const humanLink = {
  ...publicLink,
  headers: [LANGUAGE_HEADER],
  fails: {
    404: failure("NoSuchLink", "The token is unknown or was altered.", "there is no such link", { hasPage: true }),
    500: failure("LinkFailed", "Something failed on this side. Safe to repeat.", "internal error", { hasPage: true }),
  },
} as const;

/** Answers errors with pages for people: one for an unknown link, one for all other errors. */
export function explainErrors(
  door: FrontDoor,
  exchange: Exchange,
  pages: { readonly broken: InLanguages<PageContent>; readonly failed: InLanguages<PageContent> },
): void {
  exchange.errorPage = ({ status }, extra) => {
    if (!wantsPage(exchange.request)) return null;
    return pageAnswer(door, exchange, { status, content: status === 404 ? pages.broken : pages.failed, extra });
  };
}

/** Extracts the token from the last path segment of a public link, without any file extension. */
export function linkToken(request: Request): string {
  const { url } = request;
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  return path.slice(path.lastIndexOf("/") + 1);
}
