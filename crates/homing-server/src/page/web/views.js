// What joins the list once that is there: the timeline, the inbox, the deliveries, a task in detail, the form, the keys.

import { join, tasksView } from "./app.js";
import { count, view as deliveries } from "./deliveries.js";
import { detail } from "./detail.js";
import { byId } from "./dom.js";
import { view as inbox } from "./inbox.js";
import { keys } from "./keys.js";
import { onStanding } from "./live.js";
import { submitter } from "./submit.js";
import { view as timeline } from "./timeline.js";

const views = { timeline: timeline(), inbox: inbox(), deliveries: deliveries() };
const side = detail();
const form = submitter();
const { help } = keys({ list: tasksView, detail: side, submit: form.open });
byId("new-task").addEventListener("click", form.open);
byId("help").addEventListener("click", help);
join({ views, detail: side });
// How many wait and how many are dead, for the navigation: after the tasks, since nobody waits for it.
onStanding(({ state }) => { if (state === "live") { count(); views.inbox.soon(); } });
