import { BodySkeleton } from "../mime/body-skeleton.ts";
import { interleaved, type Template } from "./template.ts";
import { absoluteUrl, type FoundLink, findLinks, pixelImage, type Tracking, trackedValue } from "./tracked-html.ts";

/** The content of a gap: a value of the template, or one of the message's links or its pixel. */
type Gap =
  | { readonly kind: "value"; readonly nth: number }
  | { readonly kind: "link"; readonly link: SkeletonLink }
  | { readonly kind: "pixel" };

interface SkeletonLink {
  readonly quote: FoundLink["quote"];
  /** Its target; undefined if that depends on values. */
  readonly url: string | undefined;
  /** Its value as written in the HTML, around the template's values inside it. */
  readonly literals: readonly string[];
  /** Index of the first of these values. */
  readonly from: number;
}

/**
 * A template's HTML whose links and pixel position were found once. Filled and tracked, it equals the result of
 * `trackedHtml` for the filled template.
 */
export interface TrackedSkeleton {
  readonly body: BodySkeleton;
  /** Returns the texts for the gaps of `body`. */
  fill(values: readonly string[], tracking: Tracking): readonly string[];
}

/** More gaps would take more memory than the template and save little; real templates have fewer. */
const GAPS_MAX = 2_000;
/** Longer HTML usually belongs to a single message, which is parsed once either way. */
const CHARS_MAX = 256 * 1024;

/** Prepares a template; null if a value could start or end a tag, because the links are then known only after filling. */
export function trackedSkeleton(template: Template): TrackedSkeleton | null {
  const { literals } = template;
  if (literals.length > GAPS_MAX) return null;
  // Each value is represented by one letter or digit, which starts and ends no tag.
  const html = literals.join("0");
  if (html.length > CHARS_MAX) return null;
  const gaps: number[] = [];
  for (const [i, literal] of literals.entries()) {
    if (i < literals.length - 1) gaps.push((gaps.at(-1) ?? -1) + literal.length + 1);
  }
  const found = findLinks(html, gaps);
  if (!found.isSafe || literals.length + found.links.length > GAPS_MAX) return null;
  const cutter = new Cutter(html, gaps);
  const links = found.links.map((link) => ({ at: link.start, link }));
  const pixel = { at: found.bodyEnd ?? html.length, link: null };
  for (const { at, link } of [...links, pixel].sort((one, other) => one.at - other.at)) {
    if (link === null) cutter.cutPixel(at);
    else cutter.cutLink(link);
  }
  cutter.end();
  const { gaps: filled } = cutter;
  return {
    body: new BodySkeleton(cutter.literals),
    fill: (values, tracking) => filled.map((gap) => fillGap(gap, values, tracking)),
  };
}

/** Splits the HTML from start to end. */
class Cutter {
  readonly literals: string[] = [];
  readonly gaps: Gap[] = [];
  private done = 0;
  private value = 0;

  constructor(
    private readonly html: string,
    private readonly values: readonly number[],
  ) {}

  cutPixel(at: number): void {
    this.cutValues(at);
    this.put(at, at, { kind: "pixel" });
  }

  cutLink({ start, end, quote, value }: FoundLink): void {
    this.cutValues(start);
    const from = this.value;
    const literals: string[] = [];
    let written = start;
    for (let at = this.nextValue(); at < end; at = this.nextValue()) {
      literals.push(this.html.slice(written, at));
      written = at + 1;
      this.value += 1;
    }
    const url = this.value > from ? undefined : absoluteUrl(value);
    if (url === null) return;
    literals.push(this.html.slice(written, end));
    this.put(start, end, { kind: "link", link: { quote, url, literals, from } });
  }

  end(): void {
    this.cutValues(this.html.length);
    this.literals.push(this.html.slice(this.done));
  }

  private cutValues(before: number): void {
    for (let at = this.nextValue(); at < before; at = this.nextValue()) {
      this.put(at, at + 1, { kind: "value", nth: this.value });
      this.value += 1;
    }
  }

  private nextValue(): number {
    return this.values[this.value] ?? Number.POSITIVE_INFINITY;
  }

  private put(start: number, end: number, gap: Gap): void {
    this.literals.push(this.html.slice(this.done, start));
    this.gaps.push(gap);
    this.done = end;
  }
}

function fillGap(gap: Gap, values: readonly string[], tracking: Tracking): string {
  switch (gap.kind) {
    case "value":
      return values[gap.nth] ?? "";
    case "pixel":
      return tracking.pixel === null ? "" : pixelImage(tracking.pixel);
    case "link":
      return linkText(gap.link, values, tracking);
  }
}

function linkText(link: SkeletonLink, values: readonly string[], { trackedUrl }: Tracking): string {
  const { quote, literals, from } = link;
  const written = interleaved(literals, values, from);
  const url = link.url ?? writtenUrl(written);
  const tracked = url === null ? null : trackedUrl(url);
  return tracked === null ? written : trackedValue(tracked, quote);
}

/** Decodes the target of a quoted link from its raw value, in which quotes are escaped or of the other kind. */
function writtenUrl(written: string): string | null {
  // Addresses rarely contain other entities.
  if (!OTHER_ENTITY.test(written)) return absoluteUrl(written.replaceAll("&amp;", "&"));
  const quote = written.includes('"') ? "'" : '"';
  const [link] = findLinks(`<a href=${quote}${written}${quote}>`, []).links;
  return link === undefined ? null : absoluteUrl(link.value);
}

const OTHER_ENTITY = /&(?!amp;)/;
