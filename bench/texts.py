"""Fixed texts, English and Chinese, on which perplexity is measured: plain prose about several things."""

ENGLISH = """\
People who wait want to know two things: how many are before them, and how long it will take. A queue that shows both
is borne with patience, and one that shows neither is left. The server therefore counts who is inside, measures how long
an answer takes, and tells everybody who waits what follows from that.

On Monday the library opens at nine. The reading room on the second floor has forty seats, of which ten are kept for
visitors from other towns. Books may be borrowed for four weeks; whoever needs one for longer can ask at the desk, or
write a short letter. Drinks are allowed as long as the cup has a lid, and telephones must be silent.

To sort a list of numbers, compare each number with the one that follows it and exchange the two if they stand in the
wrong order. Repeat this until a whole pass changes nothing. The method is easy to explain and slow: for a thousand
numbers it may need half a million comparisons. A better one divides the list into two halves, sorts each of them, and
merges the results, which takes about ten thousand.

The river rises in the hills, turns north at the old mill, and reaches the sea after two hundred kilometres. In spring
the snow melts and the meadows stand under water, so that the villages were built on the higher bank. Boats carried
salt and timber until the railway came; today they carry people who have time.

Dear colleagues, the lift in the west building will be out of service on Thursday from eight until noon. Please use the
stairs or the lift in the east building, and allow some more time for meetings on the upper floors. We are sorry for the
trouble and thank you for your patience. If you cannot climb the stairs, call us, and we will find a way.
"""

CHINESE = """\
排队的人想知道两件事：前面还有几个人，大概要等多久。两样都写明白，人们就愿意等；什么都不写，人们就会走开。所以服务器要数清楚
正在处理的请求，量出一次回答需要多长时间，再把结果告诉每一个正在等待的人。

图书馆星期一上午九点开门。二楼的阅览室有四十个座位，其中十个留给外地来的读者。图书可以借四个星期，需要更长时间的读者可以到服务台
办理续借，也可以写信说明。杯子有盖就可以带饮料进来，手机必须调成静音。

要给一组数字排序，可以从头开始，把每个数字和它后面的数字比较，如果顺序不对就交换位置，一直重复到整整一轮都没有交换为止。这种方法
容易理解，但是很慢：一千个数字可能需要比较五十万次。更好的办法是把数字分成两半，分别排好，再合并起来，大约只需要一万次。

这条河发源于山里，在老磨坊那里转向北方，流了两百公里以后进入大海。春天雪化了，两岸的草地都被水淹没，所以村庄都建在地势较高的一边。
铁路修通以前，船只运送盐和木材；今天，船上坐的是有时间慢慢看风景的人。

各位同事：西楼的电梯将于星期四上午八点到十二点停止使用，请大家走楼梯，或者使用东楼的电梯，到高层开会请提前出发。给大家带来不便，
我们深表歉意，也感谢大家的理解。如果走楼梯有困难，请打电话告诉我们，我们一起想办法。
"""
