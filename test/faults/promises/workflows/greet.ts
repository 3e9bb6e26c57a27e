/** Ends at once. */
export { default } from '../../../operations/workflows/greet.ts'
