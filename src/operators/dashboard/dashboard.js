// The operators' page. Talks to /dash/api with the token that the operator enters; everything is written as text.

const REFRESH_MS = 3000;
const element = (id) => document.getElementById(id);
let token = sessionStorage.getItem("operator-token") ?? "";

async function api(path) {
  const response = await fetch(`/dash/api${path}`, { headers: { authorization: `Bearer ${token}` } });
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.error), { status: response.status });
  return body;
}

function fill(section, rows) {
  const table = section.querySelector("table");
  section.querySelector("tbody").replaceChildren(...rows);
  table.hidden = rows.length === 0;
  section.querySelector(".empty").hidden = rows.length > 0;
  section.hidden = false;
}

function row(values) {
  const tr = document.createElement("tr");
  for (const value of values) tr.insertCell().textContent = value;
  return tr;
}

async function showTenants() {
  const { tenants } = await api("/tenants?limit=100");
  const cells = (t) => [t.id, t.name, t.plan, t.channels.join(", "), t.tokens, t.created_at.slice(0, 10)];
  fill(
    element("tenants"),
    tenants.map((tenant) => row(cells(tenant))),
  );
}

async function showMessages() {
  let messages;
  try {
    ({ messages } = await api("/sandbox/messages?limit=20"));
  } catch (error) {
    // Real providers are in use: there is no sandbox to show.
    if (error.status === 404) return;
    throw error;
  }
  fill(
    element("messages"),
    messages.map((message) => {
      const { received_at, channel, from, to, subject } = message;
      const tr = row([received_at.slice(0, 19).replace("T", " "), channel, from, to, subject]);
      tr.tabIndex = 0;
      const show = () => {
        element("source").textContent = message.source;
        element("source").hidden = false;
      };
      tr.addEventListener("click", show);
      tr.addEventListener("keydown", (event) => event.key === "Enter" && show());
      return tr;
    }),
  );
}

async function showState() {
  const response = await fetch("/ready").catch(() => null);
  const failing = response === null ? "it does not answer" : response.ok ? null : (await response.json()).error;
  element("state").textContent = failing === null ? "Ready" : `Not ready: ${failing}`;
}

async function refresh() {
  await showState();
  if (token === "") return;
  try {
    await Promise.all([showTenants(), showMessages()]);
    sessionStorage.setItem("operator-token", token);
    element("entry").hidden = true;
  } catch (error) {
    if (error.status === 401 || error.status === 429) {
      token = "";
      sessionStorage.removeItem("operator-token");
      element("entry").hidden = false;
    }
    element("problem").textContent = error.message;
  }
}

element("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  token = element("token").value.trim();
  element("problem").textContent = "";
  void refresh();
});

await refresh();
setInterval(refresh, REFRESH_MS);
