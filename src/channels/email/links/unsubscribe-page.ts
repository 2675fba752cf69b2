/**
 * The pages of `/u/{token}`. They need no script and load nothing, so they work in every browser that a mail program
 * may open. All values are escaped here.
 */
export function askPage(tenantName: string): string {
  return page({
    title: "Unsubscribe",
    main: `<h1>Unsubscribe</h1>
<p>Do you want to stop receiving e-mails from <strong>${escaped(tenantName)}</strong>?</p>
<form method="post">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button type="submit">Unsubscribe</button>
</form>`,
  });
}

export function donePage(tenantName: string): string {
  return page({
    title: "Unsubscribed",
    main: `<h1>You are unsubscribed</h1>
<p role="status">You will receive no more e-mails from <strong>${escaped(tenantName)}</strong> at this address.</p>`,
  });
}

const STYLE = `:root{color-scheme:light dark}
body{font:1.125rem/1.5 system-ui,sans-serif;margin:0;padding:10vh 1.5rem}
main{max-width:32rem;margin:0 auto}
h1{font-size:1.75rem;margin:0 0 1rem}
button{font:inherit;font-weight:600;padding:.75rem 1.5rem;border:0;border-radius:.5rem;background:#1a4fc4;color:#fff;cursor:pointer}
button:focus-visible{outline:3px solid;outline-offset:3px}`;

/** Restricts the pages to their own style and form, and forbids frames and indexing. */
export const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    `default-src 'none'; style-src 'sha256-${new Bun.CryptoHasher("sha256").update(STYLE).digest("base64")}'; ` +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-robots-tag": "noindex",
} as const;

function page({ title, main }: { readonly title: string; readonly main: string }): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
