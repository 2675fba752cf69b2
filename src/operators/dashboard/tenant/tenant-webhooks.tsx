import type { JSX } from "preact";
import type { TabProps } from "../tab.ts";
import { Card } from "../ui.tsx";
import { WebhookList } from "../webhooks.tsx";

/** The webhooks of one tenant. */
export function WebhooksTab({ tenant: { id } }: TabProps): JSX.Element {
  return (
    <Card title="Webhooks">
      <WebhookList tenant={id} state={undefined} />
    </Card>
  );
}
