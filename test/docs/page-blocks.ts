/** A fenced block of a page, which a reader runs. */
export interface PageBlock {
  readonly language: "sh" | "ts" | "python";
  readonly text: string;
  readonly line: number;
  /** The reason why the test skips it; null: it runs. */
  readonly notRun: string | null;
  /** The output that the page prints below it; null if there is none. */
  readonly answer: { readonly language: "json" | "text"; readonly text: string } | null;
}

const FENCE = /^(?:<!-- not run: (?<notRun>.+) -->\n\n?)?```(?<language>\w+)\n(?<text>[^]*?)^```$/gm;
const RUN: ReadonlySet<string> = new Set(["sh", "ts", "python"]);

/** The blocks of a page in `sh`, `ts` and `python`. The next block in `json` or `text` is its output. */
export function parseBlocks(page: string): readonly PageBlock[] {
  const blocks: PageBlock[] = [];
  for (const { groups = {}, index } of page.matchAll(FENCE)) {
    const { language = "", text = "", notRun = null } = groups;
    const last = blocks.at(-1);
    if (RUN.has(language)) {
      const line = page.slice(0, index).split("\n").length;
      // `RUN` holds the languages of a block.
      blocks.push({ language: language as PageBlock["language"], text, line, notRun, answer: null });
    } else if ((language === "json" || language === "text") && last?.answer === null && last.notRun === null) {
      blocks[blocks.length - 1] = { ...last, answer: { language, text } };
    }
  }
  return blocks;
}

/** Returns null if the output has the printed shape; otherwise the difference, in one line. */
export function differenceFrom({ language, text }: NonNullable<PageBlock["answer"]>, output: string): string | null {
  if (language === "text") {
    return likeText(text.trim()).test(output.trim()) ? null : `the page prints ${text}, and it was ${output}`;
  }
  const came = parsed(output.trim()) ?? parsed(output.trim().split("\n").at(-1) ?? "");
  if (came === undefined) return `no JSON: ${output}`;
  return difference(JSON.parse(text), came, "it");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function difference(page: unknown, came: unknown, path: string): string | null {
  const differs = `${path}: the page prints ${JSON.stringify(page)}, and it was ${JSON.stringify(came)}`;
  if (typeof page === "string") return typeof came === "string" && likeText(page).test(came) ? null : differs;
  if (typeof page === "number") return typeof came === "number" ? null : differs;
  if (Array.isArray(page)) {
    if (!Array.isArray(came) || (came.length === 0) !== (page.length === 0)) return differs;
    return first(page.slice(0, came.length).map((each, at) => difference(each, came[at], `${path}[${at}]`)));
  }
  if (typeof page !== "object" || page === null || typeof came !== "object" || came === null) {
    return page === came ? null : differs;
  }
  const [printed, others] = [Object.entries(page), new Map<string, unknown>(Object.entries(came))];
  if (printed.map(([name]) => name).join() !== [...others.keys()].join()) return differs;
  return first(printed.map(([name, value]) => difference(value, others.get(name), `${path}.${name}`)));
}

function first(differences: readonly (string | null)[]): string | null {
  return differences.find((each) => each !== null) ?? null;
}

/** `…` stands for anything; ids, times and numbers for others of their form. */
function likeText(text: string): RegExp {
  const variable =
    /…|[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|\d{4}-\d\d-\d\d|\d+/g;
  let pattern = "";
  let at = 0;
  for (const { 0: found, index } of text.matchAll(variable)) {
    pattern += escaped(text.slice(at, index)) + toPattern(found);
    at = index + found.length;
  }
  return new RegExp(`^${pattern}${escaped(text.slice(at))}$`);
}

function toPattern(found: string): string {
  if (found === "…") return "[^]*";
  if (/^\d+$/.test(found)) return "\\d+";
  if (found.includes("T")) return "\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z";
  return found.length === 10 ? "\\d{4}-\\d\\d-\\d\\d" : "[0-9a-f]{8}-[0-9a-f-]{27}";
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
