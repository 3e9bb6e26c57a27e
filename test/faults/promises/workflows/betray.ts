/** Leaks its secret in every way a workflow can. */
export { default } from '../../../operations/workflows/betray.ts'
