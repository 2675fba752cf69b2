import type { PhraseFamily } from "./phrase-families.ts";
import type { SpamRule } from "./spam-rule.ts";

/**
 * Rules about the message's text. A rule matches if the text contains at least that many distinct phrases of its
 * family.
 */
export const WORDING_RULES: readonly SpamRule[] = [
  wording("LOTTERY", 2.5, ["lottery", 1], "The message tells of a prize or a lottery that the recipient has won"),
  wording("LOTTERY_MUCH", 1.5, ["lottery", 3], "The message speaks of little but a prize to be claimed"),
  wording(
    "ADVANCE_FEE",
    2.5,
    ["advanceFee", 2],
    "The message has two marks of advance-fee fraud, like an inheritance or a dormant account",
  ),
  wording("ADVANCE_FEE_MUCH", 3, ["advanceFee", 4], "The message has four marks of advance-fee fraud or more"),
  wording(
    "GREETS_STRANGER",
    2,
    ["stranger", 1],
    "The message greets as mass mail greets those whose name it does not know",
  ),
  wording("FAST_MONEY", 2.5, ["fastMoney", 1], "The message promises fast money or an income from home"),
  wording("FAST_MONEY_MUCH", 1.5, ["fastMoney", 3], "The message speaks of little but fast money"),
  wording("CRYPTO_PROFIT", 2, ["crypto", 1], "The message promises sure profit with investments or crypto-currency"),
  wording("CRYPTO_PROFIT_MUCH", 2, ["crypto", 3], "The message speaks of little but sure profit"),
  wording(
    "DRUGS",
    2.2,
    ["drugs", 1],
    "The message names prescription drugs, or pharmacies that ask for no prescription",
  ),
  wording("DRUGS_MUCH", 2, ["drugs", 3], "The message names several prescription drugs"),
  wording("MIRACLE_CURE", 2.5, ["health", 1], "The message praises a miracle cure or fast loss of weight"),
  wording("MIRACLE_CURE_MUCH", 1.5, ["health", 2], "The message praises miracle cures in several ways"),
  wording("ADULT", 2.5, ["adult", 1], "The message has sexual content"),
  wording("ADULT_MUCH", 2, ["adult", 3], "The message speaks of little but sex"),
  wording("LOAN", 2, ["loan", 1], "The message offers a loan or to get rid of debts"),
  wording("LOAN_MUCH", 1.8, ["loan", 2], "The message offers loans in several ways"),
  wording("GAMBLING", 2, ["gambling", 1], "The message offers games of chance"),
  wording("GAMBLING_MUCH", 1.5, ["gambling", 3], "The message speaks of little but games of chance"),
  wording("REPLICA", 2.2, ["replica", 1], "The message offers copies of brands, diplomas or software"),
  wording(
    "UNASKED_PROMOTION",
    2,
    ["promotion", 1],
    "The message offers search-engine ranking, followers or lists of addresses",
  ),
  wording(
    "UNASKED_PROMOTION_MUCH",
    2,
    ["promotion", 3],
    "The message speaks of little but ranking, followers or lists",
  ),
  wording(
    "EXTORTION",
    1.5,
    ["extortion", 1],
    "The message has a mark of blackmail, like a wallet to pay to or a recorded video",
  ),
  wording("EXTORTION_MUCH", 3.5, ["extortion", 3], "The message has three marks of blackmail or more"),
  wording(
    "ACCOUNT_THREAT",
    1.8,
    ["accountThreat", 2],
    "The message threatens to close an account unless the reader acts",
  ),
  wording(
    "ACCOUNT_THREAT_MUCH",
    1.7,
    ["accountThreat", 3],
    "The message has three marks of a hunt for passwords or more",
  ),
  wording("PRESSURE", 1, ["pressure", 2], "The message uses two phrases that press the reader"),
  wording("PRESSURE_MUCH", 1.5, ["pressure", 4], "The message uses four phrases that press the reader or more"),
  wording(
    "NOT_SPAM",
    1.5,
    ["denial", 1],
    "The message says of itself that it is no spam, or tells how to be removed from a list as old spam does",
  ),
];

function wording(
  name: string,
  score: number,
  [family, atLeast]: readonly [PhraseFamily, number],
  description: string,
): SpamRule {
  return { name, score, description, matches: ({ phrases }) => (phrases.get(family) ?? 0) >= atLeast };
}
