const { runs } = await (await fetch("api/runs")).json();
for (const run of runs) {
  const item = document.createElement("li");
  item.textContent = `${run.name}: ${run.task}`;
  document.getElementById("runs").append(item);
}
