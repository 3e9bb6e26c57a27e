import os
import urllib.request

request = urllib.request.Request(
    f"http://127.0.0.1:3002/alpha/browser-contexts/{os.environ['BROWSER_CONTEXT_ID']}/sign-in",
    method="DELETE",
    headers={"x-service-api-key": os.environ["API_KEY"]},
)
urllib.request.urlopen(request).close()
