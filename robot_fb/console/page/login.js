// Shows the token once, in the body of a request; from then on a cookie that no script can read stands for it.

const field = (id) => document.getElementById(id);

async function login(token, name) {
  const answer = await fetch("/login", { method: "POST", body: JSON.stringify({ token, name }) });
  if (answer.ok) {
    location.replace("/");
    return;
  }
  field("why").textContent = (await answer.json()).why;
}

const shown = new URLSearchParams(location.hash.slice(1)).get("token");
history.replaceState(null, "", "/");
field("form").addEventListener("submit", (event) => {
  event.preventDefault();
  login(field("token").value.trim(), field("name").value);
});
if (shown) login(shown, "");
