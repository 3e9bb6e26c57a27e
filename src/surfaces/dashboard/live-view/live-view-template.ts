/** The part of a run's page in which a script shows the browser. */
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import { type Html, html, nothing } from '../html.ts'

/** Hidden without JavaScript, which shows the frames. */
export function renderLiveView({ id, status }: Run, usesBrowser: boolean): Html | '' {
  if (!usesBrowser || isFinal(status)) return nothing
  return html`<section id="live-view" class="card live-view" data-live-view="/runs/${id}/live" aria-labelledby="live-view-title" hidden>
    <div class="live-view-head">
      <h2 id="live-view-title">Browser</h2>
      <button type="button" class="secondary" data-watch>Watch live</button>
    </div>
    <p class="muted" data-about>Shows the pages as they are, secrets included. That you watch is written to the audit log.</p>
    <div data-stage hidden>
      <ul class="live-view-tabs" aria-label="Tabs" data-tabs></ul>
      <p class="live-view-address"><code data-address></code></p>
      <img data-frame alt="What the browser shows now" hidden />
    </div>
    <p role="status" class="muted" data-status></p>
  </section>`
}
