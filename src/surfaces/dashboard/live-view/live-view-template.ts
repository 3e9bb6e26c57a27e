/** The part of a page in which a script shows the browser of a run. */
import type { User } from '../../../domain/accounts/user.ts'
import { type Html, html, nothing } from '../html.ts'
import { may } from '../page-roles.ts'

interface Options {
  /** What ends the control of the browser. */
  returnLabel?: string
  /** Whether the page shows the browser from the beginning. */
  isOn?: boolean
}

const controlButtons = (returnLabel: string) => html`<button type="button" data-take-over hidden>Take over</button>
  <button type="button" data-return-control hidden>${returnLabel}</button>`

/** Hidden without JavaScript, which shows the frames. `user` is the one of the page. */
export function renderLiveView(
  runId: string,
  user: User,
  { returnLabel = 'Return control', isOn = false }: Options = {},
): Html {
  return html`<section id="live-view" class="card live-view" data-live-view="/runs/${runId}/live" data-user="${user.id}" ${isOn ? html`data-is-on` : nothing} aria-labelledby="live-view-title" hidden>
    <div class="live-view-head">
      <h2 id="live-view-title">Browser</h2>
      <div class="buttons">
        ${may(user, 'POST /runs/:id/live/take-over') ? controlButtons(returnLabel) : nothing}
        <button type="button" class="secondary" data-watch>Watch live</button>
      </div>
    </div>
    <p class="muted" data-about>Shows the pages as they are, secrets included. The audit log says who watched and who took over.</p>
    <p role="status" class="muted" data-status></p>
    <p role="status" data-control></p>
    <div data-stage hidden>
      <ul class="live-view-tabs" aria-label="Tabs of the browser" data-tabs></ul>
      <p class="live-view-address"><code data-address></code></p>
      <div class="live-view-screen" data-screen><img data-frame alt="What the browser shows now" draggable="false" hidden /></div>
    </div>
  </section>`
}
