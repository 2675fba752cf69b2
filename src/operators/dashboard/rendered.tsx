import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/*
 * Renders a message from an untrusted author.
 *
 * Invariants:
 * R1. No script of a message runs: the frame's sandbox allows none, both policies (the page's, which the frame inherits,
 *     and the frame's own) allow none, and elements that could contain one are removed first.
 * R2. A message makes no requests, so its sender does not learn that an operator opened it: the policies allow only
 *     pictures inside the message, and links are disabled.
 * R3. Styles of the message apply in the frame alone. The inherited policy allows no inline styles, so they are set from
 *     here; only for this purpose, the frame has our origin.
 */

const POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
const REMOVED =
  "script, style, link, meta, base, iframe, frame, object, embed, form, input, button, textarea, select, video, audio";
const STYLED = "data-style";

interface Cleaned {
  readonly html: string;
  readonly styles: readonly string[];
  /** Number of pictures left out, because loading them would notify the sender. */
  readonly pictures: number;
}

export function Rendered({ html, title }: { readonly html: string; readonly title: string }): JSX.Element {
  const frame = useRef<HTMLIFrameElement>(null);
  const [cleaned, setCleaned] = useState<Cleaned | null>(null);
  useEffect(() => setCleaned(cleanHtml(html)), [html]);
  if (cleaned === null) return <p class="waiting">…</p>;
  const { pictures } = cleaned;
  return (
    <div class="rendered">
      <iframe
        ref={frame}
        title={title}
        sandbox="allow-same-origin"
        referrerpolicy="no-referrer"
        srcDoc={buildDocument(cleaned)}
        onLoad={() => dress(frame.current, cleaned)}
      />
      {pictures === 0 ? null : (
        <p class="small">
          {pictures === 1 ? "One picture is" : `${pictures} pictures are`} not loaded: the sender would learn of it.
        </p>
      )}
    </div>
  );
}

function buildDocument({ html }: Cleaned): string {
  return `<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="${POLICY}"></head><body>${html}</body></html>`;
}

/**
 * Removes everything from a message except text, layout and pictures inside the message. No part of it is run or loaded here.
 */
function cleanHtml(html: string): Cleaned {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  const styles = [...parsed.querySelectorAll("style")].map(({ textContent }) => textContent);
  for (const element of parsed.querySelectorAll(REMOVED)) element.remove();
  let pictures = 0;
  for (const element of parsed.querySelectorAll("*")) {
    for (const { name, value } of Array.from(element.attributes)) {
      if (name === "style") element.setAttribute(STYLED, value);
      if (name === "href") element.setAttribute("title", value);
      const isPicture = name === "src" && value.startsWith("data:image/");
      if (name === "src" && !isPicture) pictures += 1;
      if (!isPicture && REFUSED.test(name)) element.removeAttribute(name);
    }
  }
  return { html: parsed.body.innerHTML, styles, pictures };
}

/** Handlers, addresses, and styles, which are set later. */
const REFUSED =
  /^(?:on.*|style|href|xlink:href|src|srcset|background|poster|action|formaction|ping|target|srcdoc|autofocus)$/i;

/** Sets the message's styles, and the frame's height. */
function dress(frame: HTMLIFrameElement | null, { styles }: Cleaned): void {
  const inside = frame?.contentDocument;
  const view = inside?.defaultView;
  if (frame === null || inside === null || inside === undefined || view === null || view === undefined) return;
  inside.adoptedStyleSheets = [BASE, ...styles].map((text) => {
    // A style sheet belongs to the document that created it.
    const sheet = new view.CSSStyleSheet();
    sheet.replaceSync(text);
    return sheet;
  });
  for (const element of inside.querySelectorAll<HTMLElement>(`[${STYLED}]`)) {
    element.style.cssText = element.getAttribute(STYLED) ?? "";
  }
  frame.style.height = `${Math.min(HEIGHT_MAX, inside.documentElement.scrollHeight + 2)}px`;
}

const HEIGHT_MAX = 900;
/** The default style of mail programs. */
const BASE =
  "body{margin:12px;background:#fff;color:#000;font:16px/1.5 sans-serif;overflow-wrap:anywhere}img{max-width:100%}";
