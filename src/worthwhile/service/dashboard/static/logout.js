// Ends the session; what is left in the browser is of no use to anyone.
"use strict";

document.getElementById("logout").addEventListener("click", async () => {
  await fetch("/logout", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  location.assign("/");
});
