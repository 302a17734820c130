// Keeps a page of `meshmeter view` up to date. The server sends rendered parts; after a lost connection the browser names the last
// trial that it has (Last-Event-ID), and gets those that follow.
"use strict";
{
  const source = new EventSource(document.querySelector("main").dataset.events);
  for (const part of document.querySelectorAll("[id]")) {
    source.addEventListener(`part-${part.id}`, (event) => { part.innerHTML = event.data; });
  }
  const trials = document.getElementById("trials");
  source.addEventListener("trial", (event) => {
    trials.insertAdjacentHTML("afterbegin", event.data);
    while (trials.rows.length > Number(trials.dataset.most)) trials.rows[trials.rows.length - 1].remove();
  });
  source.addEventListener("reset", () => location.reload());
  const lost = document.getElementById("connection");
  source.addEventListener("open", () => { lost.hidden = true; });
  source.addEventListener("error", () => { lost.hidden = false; });
}
