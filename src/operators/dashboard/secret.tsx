import type { JSX } from "preact";
import { Dialog } from "./dialog.tsx";
import { Copy } from "./ui.tsx";

/** A secret that is shown only once. */
export function SecretDialog({
  title,
  secret,
  label,
  onClose,
}: {
  readonly title: string;
  readonly secret: string;
  readonly label: string;
  onClose(): void;
}): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>
        <strong>It is shown this once.</strong> Copy it now to where it is used: nobody can read it again.
      </p>
      <p>
        <Copy text={secret} label={label} />
      </p>
    </Dialog>
  );
}
