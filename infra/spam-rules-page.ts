import { SPAM_RULES } from "../src/channels/email/spam/builtin-spam-filter.ts";

/*
 * `bun infra/spam-rules-page.ts` writes docs/spam-rules.md from the rules themselves; a test keeps the two equal.
 */

const PAGE = new URL("../docs/spam-rules.md", import.meta.url).pathname;

/** Returns the page that lists every rule of the built-in spam filter, by name. */
export function spamRulesPage(): string {
  const rows = SPAM_RULES.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(
    ({ name, score, description }) => `| \`${name}\` | ${score} | ${description} |`,
  );
  return `${INTRODUCTION}\n| rule | points | what it says |\n|---|---:|---|\n${rows.join("\n")}\n`;
}

const INTRODUCTION = `# Rules of the built-in spam filter

With \`SPAM_FILTER=builtin\`, each e-mail with inline HTML or text is scored before it is handed over: the points of all rules that
speak are added, and above \`SPAM_THRESHOLD\` (5) the job fails. Its result names the score and the rules. The filter looks
at the message alone: the same message always gets the same score. Of the HTML it looks at the first 1,048,576 characters,
of its text at the first 200,000.

To see a job fail, put the test string of https://spamassassin.apache.org/gtube/ into a message (\`GTUBE\` below).

The phrases behind the rules on wording are in \`src/channels/email/spam/phrase-families.ts\`, in English, Spanish, French,
German, Italian, Portuguese, Dutch, Polish, Russian, Turkish, Chinese, Japanese and Korean; not every family has all of
them. Case, accents, invisible characters and styled letters make no difference to them.

This page is written by \`bun infra/spam-rules-page.ts\`.
`;

if (import.meta.main) await Bun.write(PAGE, spamRulesPage());
