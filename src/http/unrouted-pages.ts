import { html, type InLanguages, type Markup, type PageContent } from "./page.ts";

/** An address on the start page. */
interface Place {
  readonly path: string;
  readonly name: InLanguages<string>;
}

const PLACES: readonly Place[] = [
  { path: "/docs", name: { en: "API documentation", es: "Documentación de la API" } },
  { path: "/dash", name: { en: "Operator dashboard", es: "Panel de operadores" } },
];

/** Builds the page at `/`. It links only to paths that this server serves, and reveals neither its version nor a tenant. */
export function startPage(isServed: (path: string) => boolean): InLanguages<PageContent> {
  const places = PLACES.filter(({ path }) => isServed(path));
  return {
    en: {
      title: "Waybill",
      main: html`<p>This is a messaging service. Other programs use it to send emails, chat messages and wallet passes.</p>
${renderList(places, "en")}
<p class="soft">Did you follow a link in an email? Part of it is missing. Open the email and click the link again.</p>`,
    },
    es: {
      title: "Waybill",
      main: html`<p>Este es un servicio de mensajería. Otros programas lo usan para enviar correos electrónicos, mensajes de chat y pases para la cartera del móvil.</p>
${renderList(places, "es")}
<p class="soft">¿Ha seguido un enlace de un correo? Le falta una parte. Abra el correo y pulse el enlace otra vez.</p>`,
    },
  };
}

function renderList(places: readonly Place[], language: keyof Place["name"]): Markup {
  return places.reduce((list, { path, name }) => html`${list}<p><a href="${path}">${name[language]}</a></p>`, html``);
}

/** The page at an address that does not exist. */
export const NOWHERE: InLanguages<PageContent> = {
  en: {
    title: "There is nothing at this address",
    main: html`<p>Part of the address may be missing or mistyped.</p>
<p>If it comes from an email, open the email and click the link again. If that does not work either, ask the sender.</p>`,
  },
  es: {
    title: "No hay nada en esta dirección",
    main: html`<p>Es posible que la dirección esté incompleta o mal escrita.</p>
<p>Si viene de un correo, abra el correo y pulse el enlace otra vez. Si tampoco funciona, pregunte al remitente.</p>`,
  },
};
