// The version switch. A published site has one folder per version and a list of them beside the folders
// (tools/publish_docs.py); where there is no list, as in a build of one's own, there is no switch.

const here = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
const own = here.pathname.split("/").filter(Boolean).pop();

async function offer() {
  if (!location.protocol.startsWith("http")) return;
  const answer = await fetch(new URL("../versions.json", here)).catch(() => null);
  if (!answer?.ok || !answer.headers.get("content-type")?.includes("json")) return;
  const versions = await answer.json();
  const form = document.querySelector("form.versions");
  if (!form || !versions.includes(own)) return;
  const select = form.querySelector("select");
  for (const version of versions) select.append(new Option(version, version, version === own, version === own));
  select.addEventListener("change", async () => {
    const other = new URL(`../${encodeURIComponent(select.value)}/`, here);
    const same = new URL(location.pathname.slice(here.pathname.length), other);
    const there = await fetch(same, { method: "HEAD" }).catch(() => null);
    location.assign(there?.ok ? same : other); // a page that is new goes to the other version's first
  });
  form.hidden = false;
}

offer();
