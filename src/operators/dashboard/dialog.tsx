import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Action, useAction, useLoad } from "./load.ts";
import { ProblemBox } from "./ui.tsx";

/** A dialog over the page. Esc closes it; the focus stays inside, and goes back to where it was. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  onClose(): void;
  readonly children: ComponentChildren;
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Opened before it is painted, because its button can close only an open dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    element.current?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" onClick={() => element.current?.close()}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
}

interface FieldBase {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly isRequired?: boolean;
}

/** One field of a form. */
export type Field =
  | (FieldBase & {
      readonly kind: "text" | "email" | "password" | "number" | "date" | "datetime-local" | "month";
      readonly value?: string;
      readonly min?: number;
    })
  | (FieldBase & { readonly kind: "lines"; readonly value?: string; readonly rows?: number; readonly isCode?: boolean })
  | (FieldBase & { readonly kind: "choice"; readonly value?: string; readonly choices: readonly Choice[] })
  | (FieldBase & {
      /** A single line, with matching suggestions while it is typed. */
      readonly kind: "suggested";
      readonly value?: string;
      suggest(word: string, signal: AbortSignal): Promise<readonly Choice[]>;
    })
  | (FieldBase & { readonly kind: "several"; readonly values: readonly string[]; readonly choices: readonly Choice[] });

export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** The values of a filled-in form. */
export class Filled {
  constructor(private readonly data: FormData) {}

  /** Returns the value without surrounding blanks. */
  text(name: string): string {
    return String(this.data.get(name) ?? "").trim();
  }

  /** Returns the value unchanged. */
  raw(name: string): string {
    return String(this.data.get(name) ?? "");
  }

  several(name: string): readonly string[] {
    return this.data.getAll(name).map(String);
  }
}

/** A form. If `submit` rejects, the form displays the error. */
export function Form({
  fields,
  action,
  label,
  isDangerous = false,
  submit,
  onDone,
}: {
  readonly fields: readonly Field[];
  readonly action?: Action;
  readonly label: string;
  readonly isDangerous?: boolean;
  submit(filled: Filled): Promise<unknown>;
  onDone?(): void;
}): JSX.Element {
  const own = useAction();
  const { isRunning, problem, run } = action ?? own;
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isRunning || !(event.currentTarget instanceof HTMLFormElement)) return;
    const filled = new Filled(new FormData(event.currentTarget));
    if (await run(() => submit(filled))) onDone?.();
  };
  return (
    <form onSubmit={(event) => void onSubmit(event)}>
      {fields.map((field) => (
        <FieldRow key={field.name} field={field} />
      ))}
      <ProblemBox problem={problem} />
      <div class="form-actions">
        <button class={isDangerous ? "danger" : "primary"} disabled={isRunning}>
          {isRunning ? "Working…" : label}
        </button>
      </div>
    </form>
  );
}

function FieldRow({ field }: { readonly field: Field }): JSX.Element {
  const id = useId();
  const hintId = field.hint === undefined ? undefined : `${id}-hint`;
  const hint =
    field.hint === undefined ? null : (
      <p class="hint" id={hintId}>
        {field.hint}
      </p>
    );
  if (field.kind === "several") {
    return (
      <fieldset>
        <legend>{field.label}</legend>
        {field.choices.map(({ value, label }) => (
          <label key={value} class="check">
            <input type="checkbox" name={field.name} value={value} defaultChecked={field.values.includes(value)} />
            {label}
          </label>
        ))}
        {hint}
      </fieldset>
    );
  }
  return (
    <div class="field">
      <label for={id}>{field.label}</label>
      <Control field={field} id={id} hintId={hintId} />
      {hint}
    </div>
  );
}

function Control({
  field,
  id,
  hintId,
}: {
  readonly field: Exclude<Field, { kind: "several" }>;
  readonly id: string;
  readonly hintId: string | undefined;
}): JSX.Element {
  const common = { id, name: field.name, required: field.isRequired === true, "aria-describedby": hintId };
  if (field.kind === "lines") {
    const { rows = 6, value = "", isCode = false } = field;
    return (
      <textarea {...common} rows={rows} class={isCode ? "code" : undefined} spellcheck={!isCode} defaultValue={value} />
    );
  }
  if (field.kind === "choice") {
    return (
      <select {...common} defaultValue={field.value}>
        {field.choices.map(({ value, label }) => (
          <option key={value} value={value} selected={value === field.value}>
            {label}
          </option>
        ))}
      </select>
    );
  }
  if (field.kind === "suggested") return <Suggested field={field} common={common} />;
  const { kind, value, min } = field;
  const autocomplete = kind === "password" ? "off" : undefined;
  // Each type of input has its own type in JSX; the attributes set here are valid for all of them.
  const attributes = { ...common, type: kind as "text", min, autocomplete, defaultValue: value };
  return <input {...attributes} />;
}

function Suggested({
  field: { value = "", suggest },
  common,
}: {
  readonly field: Extract<Field, { kind: "suggested" }>;
  readonly common: {
    readonly id: string;
    readonly name: string;
    readonly required: boolean;
    readonly "aria-describedby": string | undefined;
  };
}): JSX.Element {
  const [word, setWord] = useState(value);
  const { data } = useLoad(async (signal) => {
    await new Promise((go) => setTimeout(go, TYPING_PAUSE_MS));
    return signal.aborted ? [] : suggest(word.trim(), signal);
  }, word);
  const listId = `${common.id}-offers`;
  return (
    <>
      <input
        {...common}
        type="text"
        list={listId}
        autocomplete="off"
        defaultValue={value}
        onInput={({ currentTarget }) => setWord(currentTarget.value)}
      />
      <datalist id={listId}>
        {(data ?? []).map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </datalist>
    </>
  );
}

/** No suggestions are requested while the person is still typing. */
const TYPING_PAUSE_MS = 200;

/** A dialog with one form, which closes after it is submitted. */
export function FormDialog({
  title,
  intro,
  onClose,
  staysOpen = false,
  ...form
}: {
  readonly title: string;
  readonly intro?: ComponentChildren;
  onClose(): void;
  readonly staysOpen?: boolean;
} & Parameters<typeof Form>[0]): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      {intro === undefined ? null : <div class="intro">{intro}</div>}
      <Form
        {...form}
        onDone={() => {
          form.onDone?.();
          if (!staysOpen) onClose();
        }}
      />
    </Dialog>
  );
}
