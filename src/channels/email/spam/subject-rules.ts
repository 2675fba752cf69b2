import { extractDomain } from "../../../domain/texts/split-address.ts";
import { gappyWords, obfuscatedWords } from "./disguised-words.ts";
import { registeredDomain } from "./link-target.ts";
import type { SpamRule } from "./spam-rule.ts";

/** Rules about the subject and the sender's name. */
export const SUBJECT_RULES: readonly SpamRule[] = [
  {
    name: "SUBJECT_CAPITALS",
    score: 1.5,
    description: "The subject is written in capitals",
    matches: ({ subject, subjectLetters: { cased, capitals } }) =>
      cased >= 8 && capitals > 0.8 * cased && /\S\s+\S/.test(subject),
  },
  {
    name: "SUBJECT_MARKS",
    score: 1.2,
    description: "The subject has a row of exclamation or question marks, stars or currency signs",
    matches: ({ subject }) => /!{2}|\?!|!\?|\?{3}|[$€£]{2}|\*{3}|！{2}/.test(subject) || subject.split("!").length > 3,
  },
  {
    name: "SUBJECT_DISGUISED",
    score: 2,
    description: "The subject hides a word behind digits, signs or gaps",
    matches: ({ subject }) => obfuscatedWords(subject) > 0 || gappyWords(subject) > 0,
  },
  {
    name: "SUBJECT_LURE",
    score: 1.8,
    description: "The subject lures with money, gifts or prizes",
    matches: ({ subjectPhrases }) => subjectPhrases.has("lure"),
  },
  {
    name: "SUBJECT_URGENT",
    score: 0.8,
    description: "The subject urges to act",
    matches: ({ subjectPhrases }) => subjectPhrases.has("urgency"),
  },
  {
    name: "SUBJECT_EMOJI",
    score: 0.6,
    description: "The subject has four pictographs or more",
    matches: ({ subject }) => (subject.match(/\p{Extended_Pictographic}/gu)?.length ?? 0) >= 4,
  },
  {
    name: "SUBJECT_EMPTY",
    score: 0.5,
    description: "The message has no subject",
    matches: ({ subject }) => !/[\p{L}\p{N}]/u.test(subject),
  },
  {
    name: "SENDER_POSES",
    score: 2,
    description: "The sender's name is an address of another domain than the sender's",
    matches: ({ from }) => poses(from),
  },
];

/** Whether the name in `name <address>` is another address than the actual sender's. */
function poses(from: string): boolean {
  const open = from.lastIndexOf("<");
  if (open === -1) return false;
  const domain = extractDomain(from).replace(/>\s*$/, "").toLowerCase();
  const [, named] = /[\w.+-]{1,64}@([\w-]{1,63}(?:\.[\w-]{1,63}){1,8})/.exec(from.slice(0, open)) ?? [];
  if (named === undefined) return false;
  return registeredDomain(named.toLowerCase()) !== registeredDomain(domain);
}
