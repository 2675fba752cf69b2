import "uplot/dist/uPlot.min.css";
import "./dashboard.css";
import { type JSX, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, type Session, whenSignedOut } from "./api.ts";
import { AuditPage } from "./audit.tsx";
import { Filled } from "./dialog.tsx";
import { FailuresPage } from "./failures.tsx";
import { Finder } from "./finder.tsx";
import { JobPage } from "./job.tsx";
import { useAction, useLoad } from "./load.ts";
import { MessagesPage } from "./messages.tsx";
import { OperatorsPage } from "./operators.tsx";
import { OverviewPage } from "./overview.tsx";
import { PlansPage } from "./plans.tsx";
import { hrefTo, type Route, useRoute } from "./route.ts";
import { SandboxPage } from "./sandbox.tsx";
import { SessionContext } from "./session.tsx";
import { TenantPage } from "./tenant/tenant.tsx";
import { TenantsPage } from "./tenants.tsx";
import { Page, ProblemBox, Waiting } from "./ui.tsx";
import { UsagePage } from "./usage.tsx";
import { WebhooksPage } from "./webhooks.tsx";

/** The signed-in operator: null if none, undefined while it is unknown. */
function App(): JSX.Element {
  const [session, setSession] = useState<Session | null | undefined>(undefined);
  const look = useLoad(async (signal) => setSession(await call("getSession", {}, { signal })), "");
  useEffect(() => whenSignedOut(() => setSession(null)), []);
  if (session === undefined) {
    return (
      <main class="sign-in">
        {look.problem === null || look.problem.status === 401 ? (
          <Waiting />
        ) : (
          <ProblemBox problem={look.problem} retry={look.reload} />
        )}
      </main>
    );
  }
  if (session === null) return <SignIn onDone={setSession} />;
  return (
    <SessionContext.Provider value={session}>
      <Shell session={session} onSignOut={() => setSession(null)} />
    </SessionContext.Provider>
  );
}

function SignIn({ onDone }: { onDone(session: Session): void }): JSX.Element {
  const { isRunning, problem, run } = useAction();
  useEffect(() => {
    document.title = "Sign in · Waybill";
  }, []);
  const signIn = async (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const token = new Filled(new FormData(event.currentTarget)).text("token");
    await run(async () => {
      await call("signIn", { body: { token } });
      onDone(await call("getSession", {}));
    });
  };
  return (
    <main class="sign-in">
      <h1>Waybill</h1>
      <form onSubmit={(event) => void signIn(event)}>
        <div class="field">
          <label for="token">Operator token</label>
          <input id="token" name="token" type="password" autocomplete="current-password" required />
          <p class="hint">
            Of an embedded start it is in the file <code>operator-token</code> of the data folder. This browser stays
            signed in for 12 hours.
          </p>
        </div>
        <ProblemBox problem={problem} />
        <button class="primary" disabled={isRunning}>
          {isRunning ? "Signing in…" : "Sign in"}
        </button>
      </form>
    </main>
  );
}

const SECTIONS = [
  ["overview", "Overview"],
  ["tenants", "Tenants"],
  ["messages", "Messages"],
  ["failures", "Failures"],
  ["webhooks", "Webhooks"],
  ["plans", "Plans"],
  ["usage", "Usage"],
  ["sandbox", "Sandbox"],
  ["operators", "Operators"],
  ["audit", "Audit log"],
] as const;

function Shell({ session, onSignOut }: { readonly session: Session; onSignOut(): void }): JSX.Element {
  const route = useRoute();
  const main = useRef<HTMLElement>(null);
  const path = route.parts.join("/");
  const isFirst = useRef(true);
  const section = route.parts[0] ?? "overview";
  useEffect(() => {
    // After a link is followed, the new page is read from its beginning, by eyes and screen readers alike.
    if (!isFirst.current) {
      main.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    isFirst.current = false;
  }, [path]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <a class="brand" href={hrefTo(["overview"])}>
          Waybill
        </a>
        <nav aria-label="Sections">
          {SECTIONS.map(([name, label]) => (
            <a key={name} href={hrefTo([name])} aria-current={section === name ? "page" : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <Finder tenant={tenantIn(route)} />
        <Account session={session} onSignOut={onSignOut} />
      </header>
      <main ref={main} tabIndex={-1}>
        <PageAt key={path} route={route} />
      </main>
    </>
  );
}

/** The tenant that the page is about; "": none. */
function tenantIn({ parts: [section, id], query }: Route): string {
  const isOfTenant = section === "tenants" || section === "messages";
  return (isOfTenant ? id : undefined) ?? query.get("tenant") ?? "";
}

function Account({ session, onSignOut }: { readonly session: Session; onSignOut(): void }): JSX.Element {
  const { run, problem } = useAction();
  const signOut = () => void run(() => call("signOut", {})).then((isDone) => isDone && onSignOut());
  return (
    <div class="account">
      <span>
        {session.name} {session.role === "read" ? <span class="soft">(may only look)</span> : null}
      </span>
      <button type="button" onClick={signOut}>
        Sign out
      </button>
      <ProblemBox problem={problem} />
    </div>
  );
}

function PageAt({ route: { parts, query } }: { readonly route: Route }): JSX.Element {
  const [section = "overview", id, sub, subId] = parts;
  switch (section) {
    case "overview":
      return <OverviewPage query={query} />;
    case "tenants":
      if (id === undefined) return <TenantsPage query={query} />;
      return <TenantPage id={id} tab={sub ?? "settings"} item={subId ?? null} />;
    case "messages":
      if (id !== undefined && sub !== undefined) return <JobPage tenantId={id} jobId={sub} />;
      return <MessagesPage query={query} />;
    case "failures":
      return <FailuresPage query={query} />;
    case "webhooks":
      return <WebhooksPage query={query} />;
    case "plans":
      return <PlansPage />;
    case "usage":
      return <UsagePage query={query} />;
    case "sandbox":
      return <SandboxPage query={query} />;
    case "operators":
      return <OperatorsPage />;
    case "audit":
      return <AuditPage query={query} />;
    default:
      return (
        <Page title="Nothing is here">
          <p>
            <a href={hrefTo(["overview"])}>To the overview</a>
          </p>
        </Page>
      );
  }
}

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
