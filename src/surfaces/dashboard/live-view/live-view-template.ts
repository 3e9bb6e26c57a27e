/** The part of a run's page in which a script shows the browser. */
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import { type Html, html, nothing } from '../html.ts'

/** Hidden without JavaScript, which shows the frames. `userId` is the user of the page. */
export function renderLiveView({ id, status }: Run, usesBrowser: boolean, userId: string): Html | '' {
  if (!usesBrowser || isFinal(status)) return nothing
  return html`<section id="live-view" class="card live-view" data-live-view="/runs/${id}/live" data-user="${userId}" aria-labelledby="live-view-title" hidden>
    <div class="live-view-head">
      <h2 id="live-view-title">Browser</h2>
      <div class="buttons">
        <button type="button" data-take-over hidden>Take over</button>
        <button type="button" data-hand-back hidden>Hand back</button>
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
