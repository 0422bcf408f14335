// The one-time token in the address becomes a cookie that no script can read; then the token is forgotten.
"use strict";
const token = location.hash.slice(1);
const said = document.getElementById("said");
history.replaceState(null, "", "/");
if (!token) {
  said.textContent = "This page opens with a link that works once. Run: reflectd dashboard";
} else {
  fetch("/enter", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  })
    .then(async (answer) => {
      if (answer.ok) location.replace("/");
      else said.textContent = await answer.text();
    })
    .catch(() => {
      said.textContent = "The dashboard does not answer. Run: reflectd dashboard";
    });
}
