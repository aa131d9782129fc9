-- The requests of light_client.py, one after the other and round again, and what became of them in lines that a program reads.

local requests, nth = {}, 0

function init()
  for path in string.gmatch(os.getenv("PATHS"), "[^\n]+") do
    requests[#requests + 1] = wrk.format(os.getenv("METHOD"), path)
  end
end

function request()
  nth = nth % #requests + 1
  return requests[nth]
end

function done(summary, latency)
  local errors, points = summary.errors, {}
  for point = 1, 999 do
    points[point] = string.format("%d", latency:percentile(point / 10))
  end
  print("arco:wrong " .. errors.connect + errors.read + errors.write + errors.status + errors.timeout)
  print("arco:requests " .. summary.requests)
  print("arco:duration_us " .. string.format("%d", summary.duration))
  print("arco:latencies_us " .. table.concat(points, " "))
end
