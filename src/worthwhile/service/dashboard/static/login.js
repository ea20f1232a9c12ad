// Sends the token once; the answer opens a session, in a cookie that scripts cannot read.
"use strict";

document.getElementById("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: document.getElementById("token").value }),
  });
  if (answer.ok) return location.reload();
  document.getElementById("problem").textContent = (await answer.json()).detail;
});
