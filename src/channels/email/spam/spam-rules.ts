import { LINK_RULES } from "./link-rules.ts";
import { MARKUP_RULES } from "./markup-rules.ts";
import type { SpamRule } from "./spam-rule.ts";
import { SUBJECT_RULES } from "./subject-rules.ts";
import { WORDING_RULES } from "./wording-rules.ts";

/** All rules of the built-in filter. Each depends only on the message, so their order does not matter. */
export const SPAM_RULES: readonly SpamRule[] = [...SUBJECT_RULES, ...WORDING_RULES, ...LINK_RULES, ...MARKUP_RULES];
