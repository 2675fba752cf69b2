import type { JSX } from "preact";
import type { TenantReputation } from "../../../clients/typescript/generated.ts";
import { call } from "./api.ts";
import { useAction, useLoad } from "./load.ts";
import { ChangeButton } from "./session.tsx";
import type { TabProps } from "./tab.ts";
import { Badge, Card, Facts, ProblemBox, Show, Time, type Tone } from "./ui.tsx";
import { counted } from "./words.ts";

const LEVELS: Readonly<Record<TenantReputation["level"], readonly [Tone, string]>> = {
  good: ["good", "good"],
  warned: ["warn", "warned"],
  slowed: ["warn", "slowed: a slower pace"],
  held: ["bad", "on hold: sends are refused"],
};
const GOVERNORS = { on: "acts", warn: "only warns", off: "is off" } as const;

/** How the governor judges the tenant's e-mail. */
export function Reputation({ tenant: { id } }: TabProps): JSX.Element {
  const loaded = useLoad((signal) => call("getReputation", { path: { id } }, { signal }), id);
  const { isRunning, problem, run } = useAction();
  const release = async () => {
    if (await run(() => call("releaseReputation", { path: { id } }))) loaded.reload();
  };
  return (
    <Card
      title="Reputation of its e-mail"
      actions={
        loaded.data === null || loaded.data.level === "good" ? null : (
          <ChangeButton isDisabled={isRunning} onClick={() => void release()}>
            Release
          </ChangeButton>
        )
      }
    >
      <Show loaded={loaded}>{(data) => <Facts facts={toFacts(data)} />}</Show>
      <ProblemBox problem={problem} />
    </Card>
  );
}

function toFacts(data: TenantReputation): Parameters<typeof Facts>[0]["facts"] {
  const { level, since, governor, sent, bounced, complained, bounces, complaints, counted_from } = data;
  const [tone, word] = LEVELS[level];
  return [
    ["Level", <Badge tone={tone}>{word}</Badge>],
    ["Since", since === null ? null : <Time at={since} />],
    ["Bounces", rate(bounces, bounced)],
    ["Complaints", rate(complaints, complained)],
    ["Sent", counted(sent, "e-mail")],
    ["Counted from", <Time at={counted_from} />],
    ["The governor", GOVERNORS[governor]],
  ];
}

function rate({ rate: share, thresholds }: TenantReputation["bounces"], events: number): string {
  const steps = [thresholds.warned, thresholds.slowed, thresholds.held].map(percent).join(", ");
  return share === null ? `none (levels above ${steps})` : `${percent(share)}, ${events} (levels above ${steps})`;
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}
