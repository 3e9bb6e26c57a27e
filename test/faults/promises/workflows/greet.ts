/** Ends at once. */
export { default } from '../../../contract/workflows/greet.ts'
