/** A program that requests pixels or follows links, as named in events. */
export interface KnownProgram {
  readonly name: string;
  /** Whether it acts by itself; otherwise it passes on a person's action. */
  readonly isMachine: boolean;
}

/*
 * How programs name themselves (User-Agent), by November 2026. The names are the programs' own, and new ones appear: an
 * unlisted program counts as a person's, as does one that poses as a browser, and a script (curl), with which people
 * try links. Cases, with their sources, are in test/channels/email/corpus/user-agents/; docs/events.md says what
 * follows.
 *
 * Sources: Apple's and Mailgun's pages on Mail Privacy Protection, Google's on its image proxy, Bird (SparkPost) on Gmail's prefetching,
 * Yahoo's help page that its proxy names, monperrus/crawler-user-agents, Braze on bot filtering, Microsoft on Office's link discovery.
 */

const [PERSON, MACHINE] = [false, true];

/** In the order in which they are tried. Every pattern is a choice of words, so it takes linear time. */
const PROGRAMS: readonly (readonly [name: string, isMachine: boolean, pattern: RegExp])[] = [
  // Loads all pictures when the mail arrives, read or not. This is its whole User-Agent.
  ["Apple Mail Privacy Protection", MACHINE, /^\s*Mozilla\/5\.0\s*$/i],
  // Loads pictures before the mail is displayed, while the mailbox is open somewhere. No browser is both Chrome 42 and
  // Edge 12.
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
  // After a browser's name, it is the program's built-in browser, and a person.
  ["WhatsApp", MACHINE, /^WhatsApp(?:\/|$)/i],
  // Other words with which a program identifies itself. Cubot makes telephones.
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

/** No program's User-Agent is longer. */
const NAME_CHARS_MAX = 1_024;

/** Returns the known program with this User-Agent; null for any other, which counts as a person's. */
export function identifyProgram(userAgent: string): KnownProgram | null {
  const shown = userAgent.slice(0, NAME_CHARS_MAX);
  const found = PROGRAMS.find(([, , pattern]) => pattern.test(shown));
  return found === undefined ? null : { name: found[0], isMachine: found[1] };
}
