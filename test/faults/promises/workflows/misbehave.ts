/** Does to its process what a workflow should not. */
export { default } from '../../../worker/workflows/misbehave.ts'
