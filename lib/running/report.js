// One switch a page for all its code. Without this script each cell's code unfolds by itself.
const folded = document.querySelectorAll("div.cell details.above-input");
const button = document.createElement("button");
function turn(shown) {
    document.documentElement.classList.toggle("code-hidden", !shown);
    for (const one of folded) one.open = shown;
    button.textContent = shown ? "Hide code" : "Show code";
    try { localStorage.setItem("study-code", shown ? "shown" : ""); } catch {}  // a browser may forbid it
}
if (folded.length) {
    let shown = false;
    try { shown = localStorage.getItem("study-code") === "shown"; } catch {}
    button.className = "code-switch";
    button.onclick = () => turn(document.documentElement.classList.contains("code-hidden"));
    document.querySelector("article h1").after(button);
    turn(shown);
}

// For screen readers and the keyboard, what the theme leaves out: levels, names, and a way to scroll a wide table.
for (const caption of document.querySelectorAll("p.caption[role=heading]")) caption.setAttribute("aria-level", 2);
document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "All pages");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", "This page");
for (const wide of document.querySelectorAll("article table, article pre"))
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
// A wide picture scrolls on a small screen, once it has a size.
addEventListener("load", () => {
    for (const image of document.querySelectorAll("article .cell_output img, article .figure svg")) {
        const natural = image.naturalWidth ?? image.width.baseVal.value, shown = image.getBoundingClientRect().width;
        if (natural < 2 * shown) continue;
        image.style.cssText = `max-width: none; width: ${natural * 0.7}px`;
        image.parentElement.style.overflowX = "auto";
    }
});

// Tables of more than twenty rows sort by each column and have a search field, unless their rows form groups, or the
// page's own script has made them so.
const long = [...document.querySelectorAll("article table:not(.display)")].filter(
    ({tBodies: [body]}) => body?.rows.length > 20 && [...body.rows].every(row => row.cells[0].textContent.trim()));
const readNumber = text => parseFloat(text.replace(/<[^>]*>/g, "").replace("−", "-"));
function sortTables(DataTable) {
    for (const table of long) {
        const rows = [...table.tBodies[0].rows], numbers = [...rows[0].cells].map((_, place) => place).filter(
            place => rows.map(row => row.cells[place]?.textContent.trim() ?? "").every(
                text => !text || text === "n/a" || !isNaN(readNumber(text))));
        const render = (cell, what) => ["display", "filter"].includes(what) ? cell : readNumber(cell) || (
            cell.trim() && cell !== "n/a" ? 0 : -Infinity);
        new DataTable(table, {
            columnDefs: [{targets: numbers, type: "num", render}], order: [], paging: false, autoWidth: false,
            layout: {topStart: "search", topEnd: null, bottomStart: null, bottomEnd: null},
        });
    }
}
if (long.length) {
    const script = document.createElement("script");
    script.src = new URL("datatables.js", document.currentScript.src);
    document.head.append(script);
}
