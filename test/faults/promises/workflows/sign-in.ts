/** Declares that it signs browser contexts in. */
export { default } from '../../../operations/workflows/sign-in.ts'
