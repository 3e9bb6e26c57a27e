/** Says its secret in every way a workflow can. */
export { default } from '../../../contract/workflows/betray.ts'
