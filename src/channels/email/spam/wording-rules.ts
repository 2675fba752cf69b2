import type { PhraseFamily } from "./phrase-families.ts";
import type { SpamRule } from "./spam-rule.ts";

/** What the message says. A rule speaks when at least so many different phrases of its family are there. */
export const WORDING_RULES: readonly SpamRule[] = [
  wording("LOTTERY", 2.5, "lottery", 1, "tells of a prize or a lottery that the recipient has won"),
  wording("LOTTERY_MUCH", 1.5, "lottery", 3, "speaks of little but a prize to be claimed"),
  wording(
    "ADVANCE_FEE",
    1.5,
    "advanceFee",
    2,
    "has two marks of advance-fee fraud, like an inheritance or a dormant account",
  ),
  wording("ADVANCE_FEE_MUCH", 3, "advanceFee", 4, "has four marks of advance-fee fraud or more"),
  wording("GREETS_STRANGER", 1.2, "stranger", 1, "greets as mass mail greets those whose name it does not know"),
  wording("FAST_MONEY", 2, "fastMoney", 1, "promises fast money or an income from home"),
  wording("FAST_MONEY_MUCH", 1.5, "fastMoney", 3, "speaks of little but fast money"),
  wording("CRYPTO_PROFIT", 2, "crypto", 1, "promises sure profit with investments or crypto-currency"),
  wording("CRYPTO_PROFIT_MUCH", 1.5, "crypto", 3, "speaks of little but sure profit"),
  wording("DRUGS", 2, "drugs", 1, "names prescription drugs, or pharmacies that ask for no prescription"),
  wording("DRUGS_MUCH", 2, "drugs", 3, "names several prescription drugs"),
  wording("MIRACLE_CURE", 2, "health", 1, "praises a miracle cure or fast loss of weight"),
  wording("MIRACLE_CURE_MUCH", 1.5, "health", 2, "praises miracle cures in several ways"),
  wording("ADULT", 2.5, "adult", 1, "has sexual content"),
  wording("ADULT_MUCH", 1.5, "adult", 3, "speaks of little but sex"),
  wording("LOAN", 1.5, "loan", 1, "offers a loan or to get rid of debts"),
  wording("LOAN_MUCH", 1.8, "loan", 2, "offers loans in several ways"),
  wording("GAMBLING", 2, "gambling", 1, "offers games of chance"),
  wording("GAMBLING_MUCH", 1.5, "gambling", 3, "speaks of little but games of chance"),
  wording("REPLICA", 2.2, "replica", 1, "offers copies of brands, diplomas or software"),
  wording("UNASKED_PROMOTION", 1.5, "promotion", 1, "offers search-engine ranking, followers or lists of addresses"),
  wording("UNASKED_PROMOTION_MUCH", 2, "promotion", 3, "speaks of little but ranking, followers or lists"),
  wording("EXTORTION", 1.5, "extortion", 1, "has a mark of blackmail, like a wallet to pay to or a recorded video"),
  wording("EXTORTION_MUCH", 3.5, "extortion", 3, "has three marks of blackmail or more"),
  wording("ACCOUNT_THREAT", 1.8, "accountThreat", 2, "threatens to close an account unless the reader acts"),
  wording("ACCOUNT_THREAT_MUCH", 1.7, "accountThreat", 3, "has three marks of a hunt for passwords or more"),
  wording("PRESSURE", 0.8, "pressure", 2, "uses two phrases that press the reader"),
  wording("PRESSURE_MUCH", 1.5, "pressure", 4, "uses four phrases that press the reader or more"),
  wording(
    "NOT_SPAM",
    1,
    "denial",
    1,
    "says of itself that it is no spam, or tells how to be removed from a list as old spam does",
  ),
];

function wording(name: string, score: number, family: PhraseFamily, atLeast: number, description: string): SpamRule {
  return { name, score, description, matches: ({ phrases }) => (phrases.get(family) ?? 0) >= atLeast };
}
