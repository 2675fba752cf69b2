import { failure } from "../../../http/failures.ts";
import { pathText } from "../../../http/parameters.ts";

/** What all public links have in common. The token is the only check: no key and no rate limit. */
export const publicLink = {
  tag: "Public links",
  params: { token: pathText("The signed token of a link in a message.", "vhkzlDfNYsGDYPJ4") },
} as const;

export const NO_SUCH_LINK = failure("NoSuchLink", "The token is unknown or was altered.", "there is no such link");
