/** Harms its own process in different ways. */
export { default } from '../../../worker/workflows/misbehave.ts'
