/** The workflow of the documents' examples. */
export { default } from '../../../examples/workflows/count-words.ts'
