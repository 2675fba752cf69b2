/**
 * The reason why a mail server, or our own relay, did not accept a message: the values of `FailureClass` that apply to
 * a refusal.
 */
export type RefusalClass =
  | "recipient"
  | "mailbox_full"
  | "domain"
  | "refused"
  | "authentication"
  | "throttled"
  | "content"
  | "sender"
  | "unreachable"
  | "other";

/** A refusal as reported by a server, an MTA's log or a report by mail. */
export interface MailRefusal {
  /** The remote server's own words, or those of the MTA if it did not reach the server. */
  readonly text: string;
  /** Reply code of RFC 5321, 4.2, if it is known beside the text. */
  readonly replyCode?: number | null;
  /** Status code of RFC 3463 from the reporting system, for example a report's `Status`. */
  readonly enhancedCode?: string | null;
  /** The command that the server replied to, for example `RCPT TO`. */
  readonly command?: string | null;
  /** Domain of the recipient, or host of the server that refused: some providers' words do not mean what they say. */
  readonly provider?: string | null;
}

export interface RefusalVerdict {
  readonly is: RefusalClass;
  /** The address can never be reached, so no more messages are sent to it. False wherever there is doubt. */
  readonly isGone: boolean;
  /** The remote's own codes if its text contains them, otherwise the supplied ones. */
  readonly replyCode: number | null;
  readonly enhancedCode: string | null;
}

/**
 * Judges a refusal. Evidence counts in this order: the remote's words, its enhanced code, its reply code, the reporting
 * system's status. A wrong suppression loses mail silently, whereas a dead address that is taken for a failure shows up
 * again with the next message; so words about anything but the address win over every code.
 */
export function judgeRefusal(refusal: MailRefusal): RefusalVerdict {
  const text = refusal.text.slice(0, TEXT_CHARS_MAX).replace(SUMMARY, "");
  const said = CODES.exec(text)?.[1];
  const ownStatus = STATUS_CODE.exec(text)?.[1];
  const replyCode = said === undefined ? (refusal.replyCode ?? null) : Number(said);
  const enhancedCode = ownStatus ?? refusal.enhancedCode ?? null;
  const seen: Seen = {
    text,
    words: removeNames(text),
    code: replyCode === null ? "" : String(replyCode),
    status: enhancedCode ?? "",
    command: refusal.command ?? "",
    provider: refusal.provider ?? "",
  };
  const row = REFUSALS.find((each) => holds(each, seen));
  const isTemporary = seen.code.startsWith("4") || (seen.code === "" && seen.status.startsWith("4"));
  // A domain that is not in the DNS has no server that could return a code, and some programs report any failure as
  // 4.0.0.
  const isFinal = !isTemporary || (row?.is === "domain" && seen.code === "");
  return { is: row?.is ?? "other", isGone: row?.isGone === true && isFinal, replyCode, enhancedCode };
}

/** Longer than any server's reply, even one of many lines. */
const TEXT_CHARS_MAX = 4_000;

/**
 * The text that Cisco's MTA puts before the remote's words when it quotes them: `5.1.0 - Unknown address error '550
 * …'`.
 */
const SUMMARY = /^[45]\.\d{1,3}\.\d{1,3} - [A-Za-z ]{1,60}(?:\d{3}-)?'/;

/** The first reply code in the text; ports and counts do not match. */
const CODES = /(?:^|[\s:'"#(<>;])([45][0-5]\d|571|585|591)(?=[\s:;,-]|$)/;

/** The first enhanced code that is not part of an IP address. */
const STATUS_CODE = /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.]*\d)/;

/**
 * Returns the text without addresses and host names, which consist of words, too: `full-moon@policy.example`. Names of
 * block lists stay.
 */
function removeNames(text: string): string {
  return text.replace(NAMES, (name) => (BLOCK_LISTS.test(name) ? name : " ")).replace(/\s+/g, " ");
}

const NAMES =
  /[^\s<>()[\]"',;:@]{0,64}@[^\s<>()[\]"',;:@]{1,255}|https?:\/\/[^\s<>"']{1,500}|(?<![\w-])[\w-]{1,63}(?:\.[\w-]{1,63}){1,9}/g;
const BLOCK_LISTS =
  /spamhaus|spamcop|sorbs|barracuda|senderscore|cloudmark|dnsbl|[./]rbl|uribl|surbl|abuseat|ipcheck\.proofpoint|dnsbl-lookup/i;

interface Seen {
  readonly text: string;
  readonly words: string;
  readonly code: string;
  readonly status: string;
  readonly command: string;
  readonly provider: string;
}

interface Row {
  readonly is: RefusalClass;
  readonly isGone?: true;
  /** Matched against the whole text: codes that a provider documents. */
  readonly text?: RegExp;
  /** Matched against the text without addresses and host names. */
  readonly words?: RegExp;
  readonly code?: RegExp;
  readonly status?: RegExp;
  readonly command?: RegExp;
  readonly provider?: RegExp;
}

function holds(row: Row, seen: Seen): boolean {
  return (["text", "words", "code", "status", "command", "provider"] as const).every(
    (part) => row[part]?.test(seen[part]) !== false,
  );
}

/** RFC 3463, 3.2 and 3.3 (RFC 7505 for 5.1.10): the recipient's mailbox. 5.1.7 and 5.1.8 concern the sender. */
const GONE_STATUS = /^5\.(?:1\.(?:[01346]|10)|2\.1)$/;
const NO_STATUS = /^(?:|[245]\.[05]\.0)$/;

/** All conditions of a row must hold, and the first row decides. */
const REFUSALS: readonly Row[] = [
  // Orange and La Poste: the last three digits decide, whatever the language.
  { is: "recipient", isGone: true, text: /\b(?:LPN|OFR|OUK)\w{0,6}[_-]?41[68]\b/ },
  { is: "mailbox_full", text: /\b(?:LPN|OFR|OUK)\w{0,6}[_-]?417\b/ },
  { is: "recipient", text: /\b(?:LPN|OFR|OUK)\w{0,6}[_-]?42[06]\b/ },
  { is: "throttled", text: /\b(?:LPN|OFR|OUK)\w{0,6}[_-]?(?:104|10[5-9]|201|505)\b/ },
  { is: "authentication", text: /\b(?:LPN|OFR|OUK)\w{0,6}[_-]?(?:401|517)\b/ },
  { is: "sender", text: /\b(?:LPN|OFR|OUK)\w{0,6}[_-]?(?:40[235]|415|421)\b/ },
  { is: "content", text: /\b(?:LPN|OFR|OUK)\w{0,6}[_-]?(?:506|51[34])\b/ },
  { is: "refused", text: /\b(?:LPN|OFR|OUK)\w{0,6}[_-]\d{3}\b/ },
  // GoDaddy.
  { is: "throttled", text: /\bIB(?:007|101|504|510|605|607)\b/ },
  { is: "refused", text: /\bIB1(?:0[3-6]|08|1[0-3])\b/ },
  { is: "sender", text: /\bIB(?:401|50[126])\b/ },
  { is: "domain", isGone: true, words: /\bthe account or domain may not exist\b/i },
  // Spectrum and Cox.
  { is: "throttled", text: /\bAUP#(?:CXCNCT|CXMXRT|[A-Za-z-]{0,8}1(?:3\d\d|4\d\d|5[458]0))\b/ },
  { is: "refused", text: /\bAUP#(?:CX|CD|IPBL|[A-Za-z-]{0,8}1[012]\d\d)/ },
  // Gmail, whose 5.2.1 is missing in some reports.
  { is: "recipient", isGone: true, words: /\baccount that you tried to reach is (?:disabled|inactive)\b/i },
  // i.ua: if its reply links to an error page, the page's number is the reason.
  { is: "recipient", isGone: true, text: /\.i\.ua\/err\/2\b/ },
  { is: "refused", text: /\.i\.ua\/err\/\d/ },
  // KDDI and DOCOMO, after they have received the message, call a recipient unknown who does not want this sender's
  // mail.
  { is: "refused", text: /\b550:?[ -]{0,3}:\s{1,9}User unknown/i },
  { is: "refused", provider: /(?:^|\.)docomo\.ne\.jp$/i, command: /^(?!RCPT)/, text: /^(?!.{0,4000}to RCPT TO)/s },
  // QQ and others, for any of their limits.
  { is: "refused", words: /\bmailbox unavailable or access den/i },
  // Microsoft 365, for a domain that accepts mail only for known recipients.
  {
    is: "recipient",
    isGone: true,
    status: /^5\.4\.1$/,
    words: /\brecipient address(?:es)? rejected ?: access denied/i,
  },
  // Gmail and others: mail arrives too fast, which is temporary. "Sending quota" does not mean a mailbox's quota.
  {
    is: "throttled",
    words:
      /\b(?:rate[- ]limit\w*|too many(?! hops)|too (?:fast|quickly|often)|throttl\w+|gr[ae]y-?list\w*|at a rate|unusual rate|this hour|per hour|slow(?:ly|er)? down|try again slower|frequency limited|excessive volume|unexpected volume|(?:daily|hourly|sending|relay(?:ing)?|rate|message|connection|concurrency|session)s? (?:\w+ ){0,3}(?:limit|quota|threshold)\w*|trop de (?:connexions|messages|destinataires)|zu viele|demasiad[ao]s|has to pause|turn \S.{0,60}did not come)\b/i,
  },
  {
    is: "authentication",
    words: /\b(?:spf|dkim|dmarc|arc|unauthenticated|not authenticated|authentication (?:checks?|level|information))\b/i,
  },
  { is: "authentication", status: /^[45]\.7\.(?:2[0-7]|30|509|515)$/ },
  {
    is: "mailbox_full",
    words:
      /\b(?:over ?-?quota|over (?:the |his |her |their |its |disk )?(?:allowed )?quota|quota|full(?! (?:details?|explanation|name|address|information|text|list|headers?))|storage|no space|not enough space|(?:disk|disc) ?space|disk usage|would exceed|(?:exceed\w*|reached|over) (?:\w+ ){0,4}(?:allowed size|storage|mailbox)|mailbox (?:\w+ ){0,3}(?:exceed\w*|limit)|too much mail data|too many messages|pleine?|voll|lleno|llena|pien[ao]|chei[ao]|speicherplatz)\b|переполнен|容量|いっぱい/i,
  },
  { is: "mailbox_full", status: /^[45]\.2\.2$/ },
  {
    is: "content",
    words:
      /\b(?:(?:anti-?)?spam(?!haus|cop)\w*|ube|junk ?mail|virus\w*|malware|phish\w*|(?:message|mail|header|line|content) (?:\w+ ){0,3}(?:too (?:big|large|long)|(?:size|length) \w+|(?:size|line|length) limit)|too (?:big|large|long)|size limit|(?:maximum|max) (?:\w+ ){0,3}size|exceed\w* (?:\S+ ){0,6}size|line limit|content (?:\w+ ){0,2}(?:rejected|denied|refused|filter\w*)|message (?:filtered|looping)|attachments?|header (?:error|\w+ limit)|headers? (?:are |is )?(?:not|too)|8-bit data|media error|mime|taille limite)\b/i,
  },
  { is: "content", status: /^[45]\.(?:3\.4|2\.3|6\.\d+)$/ },
  {
    is: "refused",
    words:
      /\b(?:block(?:ed|list|listed|ing|s)?|black[- ]?list\w*|deny ?list\w*|white ?list\w*|allow ?list\w*|reputation|spamhaus|spamcop|sorbs|barracuda\w*|[dr]n?s?bls?|banned|(?<!not )listed (?:in|at|on|by)|unsolicited|complaints?|abuse\w*|abus|bulk|policy|policies|administrative prohibition|organi[sz]ational settings|security (?:reasons|polic\w+)|suspicious\w*|dynamic ip|bounce attacks?|open relay|relay(?:ing)?(?: \w+){0,3} (?:denied|prohibited|permitted|allowed)|(?:no|unable to|cannot|not|do not|don't) relay(?:ing)?|allowed rcpthosts|members?-only|not (?:a )?(?:subscribed|member)|not subscribed|not accepting (?:mail|messages|connections) from|accept mail from|(?:ptr|rdns|reverse dns|reverse lookup|forward dns)|helo|ehlo|(?:only accepts?|accepting) mail (?:only )?from|user rules|recipient'?s? preferences|rejected by (?:this user|recipients)|permission|autoris\w+|refus\w* to (?:accept|receive)|bloqu\w+|gesperrt|blockiert|pol[ií]tica)\b/i,
  },
  { is: "refused", words: /\b(?:refused to talk to me|initial connection|my name was rejected)\b/i },
  {
    is: "sender",
    words:
      /\b(?:credentials|authentication (?:failed|required|failure)|(?:sender|from|mail from|return path|reverse path|envelope from)(?: \w+){0,2} (?:address|domain)?(?: \w+){0,3} ?:? ?(?:rejected|denied|refused|invalid|not (?:exist|allowed|valid|permitted|accepted|verified)|does ?n[o']t|unknown|must|failed|undefined)|sender (?:was |is |address |verify |verification |domain )*(?:rejected|denied|refused|invalid|failed|unknown|blocked|empty)|(?:invalid|unroutable|unrouteable|unverified|unknown|bad|bogus|illegal|unresolvable) (?:\w+ )?sender|senders? not (?:allowed|permitted|authorized)|sender address|not (?:a )?verified|purported responsible address|as sender|your (?:\w+ )?(?:account|domain|subscription|plan)|[ée]metteur invalide|absender)\b/i,
  },
  { is: "sender", words: /\b(?:after|in reply to|reject\w+ (?:the|our)) MAIL FROM\b/i },
  { is: "sender", command: /^(?:MAIL FROM|EHLO|HELO|STARTTLS|AUTH)/i },
  { is: "sender", code: /^53[0458]$/ },
  { is: "sender", status: /^[45]\.1\.[78]$/ },
  // Errors of the server itself, some of which name users and files.
  {
    is: "unreachable",
    words:
      /\b(?:procmail|maildrop|mailer error|lock failure|internal (?:server |system )?error|queue file|system (?:error|config\w*)|server (?:configuration error|is misconfigured)|ldap|loops? back|mail loop|routing loop|hop count|too many hops|delivered-to)\b/i,
  },
  { is: "unreachable", words: /\b(?:host not found, try again|name lookup failure|dns query failed)\b/i },
  // The DNS does not have the recipient's domain, or says that it takes no mail.
  {
    is: "domain",
    isGone: true,
    words:
      /\b(?:nxdomain|null ?mx|host or domain name not found(?!.{0,200}try again)|domain name not found|no such domain|(?:dns |recipient )?domain (?:\S+ )?(?:does ?n[o']t|doesn't|not) exist|domain (?:\S+ )?does ?n[o']t (?:accept|receive) (?:e?mail|any)|host unknown|unknown host|unknown domain|(?:host|domain) (?:is )?unknown|illegal host\/domain|couldn't find (?:any host|a mail exchanger)|(?<!\b(?:client|your|sender|sending) )host not found(?!.{0,200}try again)|indicated no smtp service|(?:no|any) (?:valid )?mx (?:record )?(?:was |were )?found for|no mx for|find the recipient domain|non-?existent (?:hosts?|domain)|(?:host\/)?domain does not accept mail|host does not accept mail|domaine? (?:inconnue?|inexistant)|recipient domain must exist|bad destination system)\b/i,
  },
  {
    is: "domain",
    isGone: true,
    status: /^5\.(?:1\.2|1\.10|4\.4|4\.310)$/,
    words: /\b(?:(?:invalid|unknown) domain|does not exist)\b/i,
  },
  // The recipient, in the words of many programs and in several languages.
  {
    is: "recipient",
    isGone: true,
    words:
      /\b(?:no such|unknown(?: or illegal)?|invalid|illegal|non-?existent|unrecogni[sz]ed|no longer valid|unrouteable|unroutable|not a (?:valid|known|local)|no valid|no)(?: final)?(?: delivery)?(?: email| e-mail| mail| virtual| smtp| or unknown)? ?(?:users?|userid|user ?name|mail-?box(?:es)?|recipients?|address(?:es)?|alias|account|id|local[ -]?part|person)(?: name| path)?\b(?! (?:from|sending))/i,
  },
  {
    is: "recipient",
    isGone: true,
    words:
      /\b(?:users?|mail-?box|recipients?|(?<!\b(?:ip|client|your|sending|host|source|remote|server) )address|addressee|alias|account|inbox|e?mail name|person|id)(?: \S{1,80}){0,2} ?(?:is |was |are )?(?:currently )?(?:unknown|not found|not (?:listed|known|present|local|exist(?:ing)?|recogni[sz]ed|valid|on server|ok)|does ?n[o']t exist|could ?n[o']t be found|not exist|invalid|unrecogni[sz]ed|no longer (?:exists?|valid|available|on server|in use)|terminated|closed|doesn't have)\b/i,
  },
  {
    is: "recipient",
    isGone: true,
    words:
      /\b(?:that you tried to reach does not exist|user doesn't have an?\b|there is no one at this address|not our (?:customer|user)|no (?:mail-?box|account|user) (?:here )?by that name|no mail ?box (?:found|here|available)|(?:mail-?box|recipient) name (?:is )?(?:not allowed|invalid)|recipientnotfound|recipient is not allowed|not in my validrcptto|badrcptto|(?:wrong|moved) or no longer valid|has moved|is wrong or no longer|no longer accepts mail|undeliverable address|not found by smtp address lookup|all recipients? (?:\w+ )?(?:are|were|is) invalid|addresses? (?:were |was )?unknown|does not exist at|user missing home directory|bad destination mailbox)\b/i,
  },
  {
    is: "recipient",
    isGone: true,
    words:
      /(?:utilisateur|destinataire|adresse|bo[iî]te)(?: \w+){0,3} (?:inconnue?|invalide|inexistante?)|n'existe pas|(?:empf[aä]nger|benutzer|adresse|postfach)(?: \w+){0,3} (?:unbekannt|existiert nicht|ung[uü]ltig|nicht (?:gefunden|bekannt|vorhanden))|(?:usuario|usu[aá]rio|destinatario|destinat[aá]rio|buz[oó]n|cuenta|conta)(?: \w+){0,3} (?:desconocid\w|desconhecid\w|inexistente|inv[aá]lid\w|no existe|n[aã]o existe)|no existe (?:ese|dicha?|el|la|tal)|(?:utente|destinatario|indirizzo|casella)(?: \w+){0,3} (?:sconosciut\w|inesistente|non (?:esiste|valid\w|trovat\w))|nessun utente|(?:gebruiker|ontvanger)(?: \w+){0,3} (?:onbekend|bestaat niet)|пользовател\S+ (?:\S+ ){0,3}не (?:найден|существует)|(?:ユーザ|宛先|メールアドレス).{0,80}(?:見つかりません|存在しません|不明)|ディレクトリ.{0,40}ありません|(?:用户|收件人|邮箱).{0,20}不存在/i,
  },
  // The text of 550 in RFC 5321, 4.2.3, word by word; Outlook.com, GMX and others say no more about unknown recipients.
  {
    is: "recipient",
    isGone: true,
    code: /^550$/,
    status: /^(?:|5\.[05]\.0|5\.1\.\d+|5\.2\.1)$/,
    words: /\bmailbox (?:is )?(?:unavailable|unavaiable)\b/i,
  },
  {
    is: "recipient",
    isGone: true,
    code: /^55[03]$/,
    status: NO_STATUS,
    words: /\b(?:recipient|address) (?:address )?rejected\.?\s*(?:\(|$)/i,
  },
  // A recipient that may become reachable again is kept, unless the status says that the mailbox is disabled.
  { is: "recipient", words: /\b(?:temporar\w+|try (?:again )?later|retry|try again)\b/i, status: /^5\.(?:1|2\.1)/ },
  {
    is: "recipient",
    words:
      /\b(?:disabled|deactivated|inactive|not active|not activated|suspended|discontinued|frozen|locked|expired|terminated|archived)\b/i,
    status: /^(?!5\.(?:1\.1|2\.1)$)/,
  },
  // The remaining rows rely on codes alone; 552 is about storage, and 4yz is temporary.
  { is: "domain", isGone: true, status: /^5\.1\.(?:2|10)$/, code: /^(?:|55[0136]|554)$/ },
  { is: "recipient", isGone: true, status: GONE_STATUS, code: /^(?:|50\d|55[0134]|556)$/ },
  { is: "recipient", status: /^[45]\.(?:1\.[0-6]|2\.1)$/ },
  { is: "domain", status: /^[45]\.(?:1\.2|1\.10|4\.4)$/ },
  { is: "throttled", text: /^421\b/ },
  { is: "throttled", status: /^4\.7\.\d+$/ },
  { is: "refused", words: /\b(?:access denied|denied by|not permitted|go away|forbidden|rejected by)\b/i },
  { is: "refused", status: /^5\.7\.\d+$/ },
  { is: "unreachable", status: /^[45]\.4\.\d+$/ },
  {
    is: "unreachable",
    words:
      /\b(?:did not answer|could not be (?:reached|delivered)|dropped the connection|timed? ?out|is away|no encrypted connection|broke off|connection (?:refused|reset)|network error|too long)\b/i,
  },
];
