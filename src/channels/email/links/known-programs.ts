/** A program that asks for pixels or follows links, as events name it. */
export interface KnownProgram {
  readonly name: string;
  /** Whether it asks by itself; otherwise it passes on what a person does. */
  readonly isMachine: boolean;
}

/*
 * How programs name themselves (User-Agent), by November 2026. They are other people's words and grow: a program that is not in here
 * counts as a person's, as does one that hides behind a browser's name, and one that is a script (curl), with which people try links.
 * Cases, with their sources, are in test/channels/email/corpus/user-agents/; docs/events.md says what follows.
 *
 * Sources: Apple's and Mailgun's pages on Mail Privacy Protection, Google's on its image proxy, Bird (SparkPost) on Gmail's prefetching,
 * Yahoo's help page that its proxy names, monperrus/crawler-user-agents, Braze on bot filtering, Microsoft on Office's link discovery.
 */

const [PERSON, MACHINE] = [false, true];

/** In the order in which they are tried. Every pattern is a choice of words, so it takes linear time. */
const PROGRAMS: readonly (readonly [name: string, isMachine: boolean, pattern: RegExp])[] = [
  // Loads all pictures when the mail comes, read or not, and says nothing but this.
  ["Apple Mail Privacy Protection", MACHINE, /^\s*Mozilla\/5\.0\s*$/i],
  // Loads pictures before the mail is shown, while the mailbox is open somewhere. Chrome 42 and Edge 12 never were one browser.
  ["Gmail prefetch", MACHINE, /Chrome\/42\.0\.2311\.135 Safari\/537\.36 Edge\/12\.246 Mozilla\/5\.0/i],
  // Load pictures when the mail is opened, and keep them: once for each message.
  ["Gmail", PERSON, /GoogleImageProxy|ggpht\.com/i],
  ["Yahoo Mail", PERSON, /YahooMailProxy/i],
  ["Barracuda", MACHINE, /barracuda/i],
  ["Proofpoint", MACHINE, /proofpoint|urldefense/i],
  ["Mimecast", MACHINE, /mimecast/i],
  ["Cisco Secure Email", MACHINE, /cisco ?secure|ironport/i],
  [
    "Microsoft",
    MACHINE,
    /safelinks|(?:skype|teams|bing)(?:[ -]?uri|[ -]?url)?[ -]?preview|office (?:existence|protocol) discovery/i,
  ],
  ["Google Safe Browsing", MACHINE, /google-safety|google[ -]?safe/i],
  ["Trend Micro", MACHINE, /trend ?micro|\bTMES\b/i],
  ["Sophos", MACHINE, /sophos/i],
  ["Fortinet", MACHINE, /forti(?:mail|guard|sandbox|net)/i],
  ["Symantec", MACHINE, /symantec|messagelabs/i],
  ["Forcepoint", MACHINE, /forcepoint/i],
  ["Zscaler", MACHINE, /zscaler/i],
  ["Cloudflare", MACHINE, /cloudflare/i],
  ["VirusTotal", MACHINE, /virustotal/i],
  ["Slack", MACHINE, /slackbot|slack-imgproxy/i],
  ["Facebook", MACHINE, /facebookexternal(?:hit|ua)|meta-externalagent/i],
  // With a browser's name before it, it is the browser within the program, and a person.
  ["WhatsApp", MACHINE, /^WhatsApp(?:\/|$)/i],
  // Other words by which a program says what it is. Cubot makes telephones.
  ["robot", MACHINE, /(?<!cu)bot(?![a-z])|robot|crawler|spider|\bslurp\b|heritrix|nutch/i],
  ["preview", MACHINE, /(?:link|url|uri|page|web|site)[ _-]?(?:preview|expand)|embedly|iframely|flipboardproxy/i],
  [
    "scanner",
    MACHINE,
    /(?:url|link|web|security|virus|phish|malware|threat)[ _-]?(?:scan|check|inspect)|scanner|netcraft|censys/i,
  ],
  ["prefetch", MACHINE, /prefetch|prerender/i],
  ["browser without a window", MACHINE, /headlesschrome|phantomjs|puppeteer|playwright/i],
];

/** No program has a longer name for itself. */
const NAME_CHARS_MAX = 1_024;

/** The program that names itself so; null: none that is known, which counts as a person's. */
export function identifyProgram(userAgent: string): KnownProgram | null {
  const shown = userAgent.slice(0, NAME_CHARS_MAX);
  const found = PROGRAMS.find(([, , pattern]) => pattern.test(shown));
  return found === undefined ? null : { name: found[0], isMachine: found[1] };
}
