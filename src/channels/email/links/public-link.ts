import type { Exchange } from "../../../http/exchange.ts";
import { failure } from "../../../http/failures.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { type InLanguages, LANGUAGE_HEADER, type PageContent, pageAnswer, wantsPage } from "../../../http/page.ts";
import { pathText } from "../../../http/parameters.ts";

/** What all public links have in common. The token is the only check: no key and no rate limit. */
export const publicLink = {
  tag: "Public links",
  params: { token: pathText("The signed token of a link in a message.", "vhkzlDfNYsGDYPJ4") },
} as const;

/** What the links have in common that people follow. */
export const humanLink = {
  ...publicLink,
  headers: [LANGUAGE_HEADER],
  fails: {
    404: failure("NoSuchLink", "The token is unknown or was altered.", "there is no such link", { hasPage: true }),
    500: failure("LinkFailed", "Something failed on this side. Safe to repeat.", "internal error", { hasPage: true }),
  },
} as const;

/** Has errors answered to people with pages: an unknown link, and everything else. */
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

/** The token in the last path segment of a public link, without any file extension. */
export function linkToken(request: Request): string {
  const { url } = request;
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  return path.slice(path.lastIndexOf("/") + 1);
}
