import { html, type InLanguages, type Markup, type PageContent } from "../../../http/page.ts";

/* What people read who follow a link in an e-mail, in every language that pages are written in. */

/** Asks for the click that unsubscribes. */
export function askPage(tenantName: string): InLanguages<PageContent> {
  const { en, es } = senderNamed(tenantName);
  return {
    en: {
      title: "Unsubscribe",
      main: html`<p>Do you want to stop receiving emails from ${en}?</p>
<p class="soft">This stops every email that they send to your address through this service, receipts and reminders too. You cannot undo it here.</p>
${unsubscribeForm("Unsubscribe")}`,
    },
    es: {
      title: "Darse de baja",
      main: html`<p>¿Quiere dejar de recibir correos de ${es}?</p>
<p class="soft">Dejará de recibir todos los correos que este remitente le envía mediante este servicio, también recibos y recordatorios. Aquí no se puede deshacer.</p>
${unsubscribeForm("Darme de baja")}`,
    },
  };
}

/** After the click. */
export function donePage(tenantName: string): InLanguages<PageContent> {
  const { en, es } = senderNamed(tenantName);
  return {
    en: {
      title: "You are unsubscribed",
      main: html`<p>You will receive no more emails from ${en} at this address.</p>
<p class="soft">An email that is already on its way may still arrive. You can close this page.</p>`,
    },
    es: {
      title: "Se ha dado de baja",
      main: html`<p>Ya no recibirá más correos de ${es} en esta dirección.</p>
<p class="soft">Si un correo ya está en camino, aún puede llegar. Puede cerrar esta página.</p>`,
    },
  };
}

/** In place of `askPage`, once the reader has unsubscribed. */
export function alreadyPage(tenantName: string): InLanguages<PageContent> {
  const { en, es } = senderNamed(tenantName);
  return {
    en: {
      title: "You are already unsubscribed",
      main: html`<p>You receive no more emails from ${en} at this address. There is nothing left to do.</p>`,
    },
    es: {
      title: "Ya se había dado de baja",
      main: html`<p>Ya no recibe correos de ${es} en esta dirección. No tiene que hacer nada más.</p>`,
    },
  };
}

/** For a token that cannot be read: cut off, altered, or signed with a key that is no longer in use. */
export const BROKEN_UNSUBSCRIBE: InLanguages<PageContent> = {
  en: {
    title: "This link does not work",
    main: html`<p>It is incomplete, was changed, or is too old. So we cannot tell which emails you want to stop, and nothing has changed.</p>
<p>Open the email and click the link again, or use your mail program’s own unsubscribe button. If that does not work either, ask the sender.</p>`,
  },
  es: {
    title: "Este enlace no funciona",
    main: html`<p>Está incompleto, ha sido modificado o es demasiado antiguo. Por eso no sabemos qué correos quiere dejar de recibir, y nada ha cambiado.</p>
<p>Abra el correo y pulse el enlace otra vez, o use el botón de su programa de correo para darse de baja. Si tampoco funciona, pregunte al remitente.</p>`,
  },
};

/** As `BROKEN_UNSUBSCRIBE`, for a link that should lead somewhere. */
export const BROKEN_CLICK: InLanguages<PageContent> = {
  en: {
    title: "This link does not work",
    main: html`<p>It is incomplete, was changed, or is too old. So we do not know where it should lead.</p>
<p>Open the email and click the link again. If that does not work either, ask the sender.</p>`,
  },
  es: {
    title: "Este enlace no funciona",
    main: html`<p>Está incompleto, ha sido modificado o es demasiado antiguo. Por eso no sabemos adónde debe llevar.</p>
<p>Abra el correo y pulse el enlace otra vez. Si tampoco funciona, pregunte al remitente.</p>`,
  },
};

/** When we fail to show a page. */
export const FAILED: InLanguages<PageContent> = {
  en: {
    title: "Something went wrong",
    main: html`<p>The fault is on our side. Please try again in a few minutes.</p>
<p><a href="">Try again</a></p>`,
  },
  es: {
    title: "Algo ha fallado",
    main: html`<p>El fallo es nuestro. Vuelva a intentarlo dentro de unos minutos.</p>
<p><a href="">Volver a intentarlo</a></p>`,
  },
};

/** When nobody knows whether the click was recorded. */
export const UNSUBSCRIBE_FAILED: InLanguages<PageContent> = {
  en: {
    title: "You may still be subscribed",
    main: html`<p>Something went wrong on our side. Please try again in a few minutes: a second click does no harm.</p>
${unsubscribeForm("Try again")}`,
  },
  es: {
    title: "Es posible que aún no se haya dado de baja",
    main: html`<p>Algo ha fallado por nuestra parte. Vuelva a intentarlo dentro de unos minutos: pulsar dos veces no causa problemas.</p>
${unsubscribeForm("Volver a intentarlo")}`,
  },
};

function unsubscribeForm(button: string): Markup {
  return html`<form method="post">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button type="submit">${button}</button>
</form>`;
}

/** The tenant in a sentence. Its name is isolated, so that its writing direction does not reorder the words around it. */
function senderNamed(tenantName: string): InLanguages<Markup> {
  const name = shownName(tenantName);
  const shown = html`<bdi><strong>${name}</strong></bdi>`;
  return name === "" ? { en: html`this sender`, es: html`este remitente` } : { en: shown, es: shown };
}

const NAME_CHARS_MAX = 100;

/**
 * The name as it is safe to show: without characters that change the direction of other text or cannot be seen, without piles of
 * accents that cover other lines, and of limited length. Empty if nothing is left.
 */
function shownName(name: string): string {
  const visible = name
    // More than any page shows, and little enough for what follows.
    .slice(0, 20 * NAME_CHARS_MAX)
    .toWellFormed()
    .replace(/[[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]--[\p{Join_Control}\p{Variation_Selector}]]/gv, "")
    .replace(/[\p{Cc}\p{Z}]+/gu, " ")
    .replace(/(\p{M}{4})\p{M}+/gu, "$1")
    .trim();
  const chars = Array.from(visible);
  const isBlank = !/[\p{L}\p{N}\p{P}\p{S}]/u.test(visible);
  if (isBlank) return "";
  return chars.length > NAME_CHARS_MAX ? `${chars.slice(0, NAME_CHARS_MAX - 1).join("")}…` : visible;
}
