/** The visibility of an element's text according to its own style and colour attributes. */
export interface InlineStyle {
  /** Not displayed at all, whatever the styles of elements inside. */
  readonly gone: boolean;
  /** Too small to read; undefined: inherited. */
  readonly tiny: boolean | undefined;
  /** Undefined: inherited. */
  readonly color: Color | undefined;
  readonly background: Color | undefined;
}

/**
 * 0xRRGGBB; `clear` is fully transparent; `other` cannot be determined without a browser (an image, a name, a
 * gradient).
 */
export type Color = number | "clear" | "other";

/** Parses a `style` attribute, and the `color` and `bgcolor` attributes of older HTML, which the style overrides. */
export function inlineStyle(style: string, color: string | undefined, bgcolor: string | undefined): InlineStyle {
  const declarations = parseDeclarations(style);
  const ownColor = declarations.get("color") ?? color;
  const background = declarations.get("background-color") ?? declarations.get("background") ?? bgcolor;
  return {
    gone: isGone(declarations),
    tiny: isTiny(declarations.get("font-size")),
    color: ownColor === undefined ? undefined : parseColor(ownColor.trim().toLowerCase()),
    background: background === undefined ? undefined : parseBackground(background.trim().toLowerCase()),
  };
}

/** Whether text of one colour is invisible on the other. Unknown colours count as visible. */
export function isUnseen(color: Color, background: Color): boolean {
  if (color === "clear") return true;
  if (typeof color !== "number" || typeof background !== "number") return false;
  return [16, 8, 0].every((shift) => Math.abs(((color >> shift) & 0xff) - ((background >> shift) & 0xff)) <= NEAR);
}

/** Smallest visible difference, in 255 steps per channel. */
const NEAR = 8;
const DECLARATIONS_MAX = 60;

/** Properties and values in lower case; the last of repeated properties counts, as in a browser. */
function parseDeclarations(style: string): ReadonlyMap<string, string> {
  const declarations = new Map<string, string>();
  if (style === "") return declarations;
  for (const declaration of style.toLowerCase().split(";", DECLARATIONS_MAX)) {
    const colon = declaration.indexOf(":");
    if (colon === -1) continue;
    const value = declaration.slice(colon + 1).replace("!important", "");
    declarations.set(declaration.slice(0, colon).trim(), value.trim());
  }
  return declarations;
}

function isGone(declarations: ReadonlyMap<string, string>): boolean {
  const is = (property: string, value: string) => declarations.get(property) === value;
  if (is("display", "none") || is("visibility", "hidden")) return true;
  if (isZero(declarations.get("opacity"))) return true;
  if (
    is("overflow", "hidden") &&
    ["height", "max-height", "width", "max-width"].some((side) => isZero(declarations.get(side)))
  ) {
    return true;
  }
  return ["text-indent", "left", "top", "margin-left"].some((side) => isFarOut(declarations.get(side)));
}

function isZero(value: string | undefined): boolean {
  return value !== undefined && value !== "" && Number.parseFloat(value) === 0;
}

function isFarOut(value: string | undefined): boolean {
  return value !== undefined && Number.parseFloat(value) <= -900;
}

/**
 * Whether text of this size is too small to read. Relative sizes (`1em`, `100%`) are inherited, unless they are close
 * to zero themselves.
 */
function isTiny(size: string | undefined): boolean | undefined {
  if (size === undefined) return undefined;
  const number = Number.parseFloat(size);
  if (Number.isNaN(number)) return undefined;
  if (number === 0) return true;
  if (size.endsWith("rem")) return number < 0.1;
  if (size.endsWith("em")) return number < 0.1 ? true : undefined;
  if (size.endsWith("%")) return number < 10 ? true : undefined;
  return number < 2;
}

const NAMED: Readonly<Record<string, Color>> = { white: 0xffffff, black: 0, transparent: "clear" };

function parseColor(text: string): Color | undefined {
  if (text === "inherit" || text === "currentcolor" || text === "") return undefined;
  if (Object.hasOwn(NAMED, text)) return NAMED[text];
  const [, hex] = /^#?([\da-f]{3,8})$/.exec(text) ?? [];
  if (hex !== undefined) return hexColor(hex);
  const [, channels] = /^rgba?\(([\d\s.,%/]{1,60})\)$/.exec(text) ?? [];
  return channels === undefined ? "other" : channelColor(channels);
}

function hexColor(hex: string): Color {
  const long = hex.length <= 4 ? Array.from(hex, (digit) => digit + digit).join("") : hex;
  if (long.length === 8 && long.endsWith("00")) return "clear";
  return long.length === 6 || long.length === 8 ? Number.parseInt(long.slice(0, 6), 16) : "other";
}

function channelColor(channels: string): Color {
  const [red = Number.NaN, green = Number.NaN, blue = Number.NaN, alpha = 1] = channels
    .split(/[\s,/]+/)
    .filter((channel) => channel !== "")
    .map((channel) => (channel.endsWith("%") ? Number.parseFloat(channel) * 2.55 : Number.parseFloat(channel)));
  if (alpha === 0) return "clear";
  const packed = (Math.round(red) << 16) | (Math.round(green) << 8) | Math.round(blue);
  return Number.isNaN(red + green + blue) ? "other" : packed & 0xffffff;
}

/**
 * Parses a background, including the colour in the `background` shorthand. Behind a transparent background, the outer
 * one is visible.
 */
function parseBackground(text: string): Color | undefined {
  if (text.includes("url(") || text.includes("gradient(")) return "other";
  if (text === "none" || text === "inherit" || text === "") return undefined;
  const whole = parseColor(text);
  if (whole !== "other") return whole === "clear" ? undefined : whole;
  const [word] = /#[\da-f]{3,8}|\b(?:white|black|transparent)\b/.exec(text) ?? [];
  const color = word === undefined ? "other" : parseColor(word);
  return color === "clear" ? undefined : color;
}
