import { failure } from "../../../http/failures.ts";
import { pathText } from "../../../http/parameters.ts";

/** What all public links have in common. The token is the only check: no key and no rate limit. */
export const publicLink = {
  tag: "Public links",
  params: { token: pathText("The signed token of a link in a message.", "vhkzlDfNYsGDYPJ4") },
} as const;

export const NO_SUCH_LINK = failure("NoSuchLink", "The token is unknown or was altered.", "there is no such link");

/** The token in the last path segment of a public link, without any file extension. */
export function linkToken(request: Request): string {
  const { url } = request;
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  return path.slice(path.lastIndexOf("/") + 1);
}
